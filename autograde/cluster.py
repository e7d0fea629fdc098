"""Run answers on the workers of a Dask cluster: what travels are bytes that hold JSON.

A question holds all that a worker needs: the setup cells, the answers and the tests. So a worker
keeps nothing of a class, and of the course only the code, which must be the driver's. Each Dask
worker owns one warm engine. A worker that dies is no loss: Dask asks the next one, and as random
numbers come with the question, the answer is the same.

A compromised worker is not trusted: of what it says, the client decodes bytes and no pickles
(`deserializers`), and the JSON in them is checked. Dask's own messages are another matter, so keep
a cluster among machines that you trust: see pages/more-machines.md.
"""

import contextlib
import functools
import json
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from distributed import Client, KilledWorker, WorkerPlugin, get_worker

from autograde.chapters import ROOT
from autograde.executors import NoCluster
from autograde.plan import deciding_files, digest_of
from autograde.run import Engine, Limits, NowhereToRun, Verdict, WorkerError
from autograde.walls import NoWalls, note_no_walls

NAME = "plainformer-grader"
LARGEST = 16 * 2**20  # bytes of one answer: a message is at most a page
TOLD = {
    key: kind for key, kind in Verdict.__annotations__.items() if key not in ("exercise", "points")
}
LOOK = 5  # seconds between two looks whether there are workers still
GIVE_UP = 60  # seconds without any worker
CONNECT = 10  # seconds for the scheduler to answer
START = "python -m dask worker {address} --nthreads 1 --no-dashboard"


# On a worker


class Grader(WorkerPlugin):
    """The warm engine of one Dask worker, which answers one question at a time."""

    name = NAME

    def setup(self, worker) -> None:
        self._turn, self._engine, self._made_for = threading.Lock(), None, None

    def teardown(self, worker) -> None:
        self._stop()

    def answer(self, question: bytes) -> bytes:
        asked = json.loads(question)
        if asked.pop("same") != same_here():  # it came to the cluster after `connected` had looked
            return json.dumps({"other": platform.node()}).encode()
        with self._turn:
            try:
                self._prepare(asked.pop("engine"))
                return json.dumps({"told": list(self._engine.exchange(asked))}).encode()
            except Exception as error:  # an exception itself would travel as a pickle
                self._stop()
                return json.dumps({"failed": str(error) or repr(error)}).encode()

    def _prepare(self, wanted: dict) -> None:
        """An engine with these limits: another class may have others."""
        if self._engine is None or self._made_for != wanted:
            self._stop()
            self._engine = Engine(Limits(**wanted["limits"]), isolation=wanted["isolation"])
            self._made_for = wanted

    def _stop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            with contextlib.suppress(Exception):  # it may be what has failed
                engine.__exit__()


# A lambda is sent whole, and so the scheduler, which reads it first, need not have our code.
ANSWER = lambda question: get_worker().plugins[NAME].answer(question)  # noqa: E731


def describe(dask_worker) -> str:
    """What a worker is, as JSON: whether it judges as the driver would, and behind which walls."""
    found = {
        "same": same_here(),
        "walls": _walls(),
        "ready": NAME in dask_worker.plugins,
        "threads": dask_worker.state.nthreads,
    }
    return json.dumps(found)


@functools.cache  # what is in memory is what counts, even if the files have changed since
def same_here() -> dict[str, str]:
    """All that has to be the same on two machines for the same marks."""
    files = [*deciding_files(), Path(__file__)]
    return {
        "the course's code": digest_of(*(file.read_bytes() for file in files))[:12],
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in ("torch", "numpy", "distributed")},
    }


def _walls() -> list:
    """`protections()` of this machine; in a process of its own, as a worker has threads."""
    code = "import json; from autograde.engine.jail import protections as p; print(json.dumps(p()))"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    return json.loads(told.stdout)


# In the driver


class RemoteEngine(Engine):
    """An Engine whose worker is somewhere in the cluster."""

    def __init__(self, cluster: "Cluster", limits: Limits, *, isolation: str):
        super().__init__(limits, isolation=isolation)
        self._cluster = cluster
        self._wanted = {"limits": asdict(limits), "isolation": isolation}

    def exchange(self, request: dict) -> Iterator[dict]:
        more = {"engine": self._wanted, "same": same_here()}
        question = json.dumps({**request, **more}).encode()
        asked = {test["id"] for task in request["exercises"] for test in task["tests"]}
        return iter(told(self._cluster.ask(question), asked))


class Cluster:
    """The workers behind one scheduler; several threads may ask at once."""

    def __init__(self, client: Client, address: str, limits: Limits, isolation: str):
        self._client, self._address = client, address
        self._limits, self._isolation = limits, isolation

    def engine(self) -> RemoteEngine:
        return RemoteEngine(self, self._limits, isolation=self._isolation)

    @property
    def workers(self) -> int:
        """How many there are now. Only so many are asked at once: whoever waits at a worker that
        dies is suspected with the one that killed it."""
        return max(1, len(self._client.nthreads()))

    def ask(self, question: bytes) -> bytes:
        """Raises WorkerError over this question, NowhereToRun where there is nobody to ask."""
        alone = 0
        try:
            future = self._client.submit(ANSWER, question, pure=False)
            while alone < GIVE_UP:
                with contextlib.suppress(TimeoutError):
                    return future.result(timeout=LOOK)
                alone = 0 if self._client.nthreads() else alone + LOOK
        except KilledWorker as error:
            raise WorkerError(
                f"{error.allowed_failures + 1} workers of the cluster ended over it"
            ) from None
        except TypeError as error:  # a pickle, say
            raise WorkerError(f"a worker answered in no way that we read: {error}") from None
        except (CancelledError, OSError):
            raise NowhereToRun(self._lost("cannot be reached any more")) from None
        raise NowhereToRun(self._lost(f"has had no worker for {GIVE_UP} seconds"))

    def _lost(self, what: str) -> str:
        return (
            f"the scheduler {self._address} {what}; what is graded is kept. Run the same command "
            "to go on, or without --scheduler to grade on this machine"
        )


def told(reply: bytes, asked: set[str]) -> list[dict]:
    """The verdicts in a worker's reply, of the shape that an engine's have. Raises WorkerError."""
    if not isinstance(reply, bytes) or len(reply) > LARGEST:
        raise WorkerError(f"a worker's reply is not bytes, {LARGEST} at most")
    try:
        said = json.loads(reply)
    except (ValueError, RecursionError):
        raise WorkerError("a worker's reply is not JSON") from None
    if isinstance(said, dict) and isinstance(said.get("failed"), str):
        raise WorkerError(said["failed"])
    if isinstance(said, dict) and isinstance(said.get("other"), str):
        raise NowhereToRun(
            f"a worker on {said['other']} joined that has another state of the course; what is "
            "graded is kept. Stop that worker, and run the same command to go on"
        )
    verdicts = said.get("told") if isinstance(said, dict) else None
    if not isinstance(verdicts, list) or not all(_is_verdict(one, asked) for one in verdicts):
        raise WorkerError("a worker's reply is not a list of verdicts on what was asked")
    return verdicts


def _is_verdict(one, asked: set[str]) -> bool:
    """Of the fields that a Verdict has, but for those that the driver knows better."""
    if not isinstance(one, dict) or not {"test", "state"} <= set(one) <= set(TOLD):
        return False
    return all(isinstance(one[key], TOLD[key]) for key in one) and one["test"] in asked


@contextlib.contextmanager
def connected(
    address: str, *, limits: Limits, required: bool, wanted: int = 1, patience: float = GIVE_UP
) -> Iterator[Cluster]:
    """The cluster at this address, when its workers would judge as we do.

    Waits for `wanted` workers, and goes on with fewer after `patience` seconds. Raises NoCluster,
    and NoWalls where all walls are required and a worker lacks one.
    """
    with contextlib.closing(_client(address, wanted, patience)) as client:
        found = _descriptions(client, address)
        for worker, it in found.items():
            _need_the_same(worker, it)
            _need_walls(worker, *it["walls"], required=required)
        if not all(it["ready"] for it in found.values()):
            client.register_plugin(Grader())  # later ones get it from the scheduler
        yield Cluster(client, address, limits, "required" if required else "jail")


def _client(address: str, wanted: int, patience: float) -> Client:
    """A client that unpickles no result, and has waited for its workers: one at least."""
    try:
        client = Client(
            address,
            timeout=CONNECT,
            deserializers=["dask", "msgpack"],
            set_as_default=False,
        )
    except (OSError, ValueError, TypeError) as error:
        raise NoCluster(
            f"--scheduler {address}: no Dask scheduler answers there ({error}). Start one in the "
            "course's folder with `python -m dask scheduler`, which prints its address, and see "
            "that this machine may connect to it; or grade without --scheduler"
        ) from None
    with contextlib.suppress(TimeoutError):
        client.wait_for_workers(wanted, timeout=patience)
    if not client.nthreads():
        client.close()
        raise NoCluster(
            f"--scheduler {address} has no workers. Start some on other machines, in the same "
            f"checkout: `{START.format(address=address)}`"
        ) from None
    return client


def _descriptions(client: Client, address: str) -> dict[str, dict]:
    try:
        return {worker: json.loads(text) for worker, text in client.run(describe).items()}
    except Exception as error:  # it has another course, or none
        raise NoCluster(
            f"--scheduler {address}: a worker cannot say what it is ({type(error).__name__}: "
            f"{error}). Start workers in the course's folder, in its environment: "
            f"`{START.format(address=address)}`"
        ) from None


def _need_the_same(worker: str, it: dict) -> None:
    here, there = same_here(), it["same"]
    other = [
        f"{name} {there.get(name)} (here {here[name]})"
        for name in here
        if there.get(name) != here[name]
    ]
    if other:
        raise NoCluster(
            f"the worker {worker} would not judge as this machine does: it has {', '.join(other)}. "
            "Bring both to the same checkout and environment, and start the worker anew"
        )
    if it["threads"] != 1:
        raise NoCluster(
            f"the worker {worker} has {it['threads']} threads and one engine; start it with "
            "--nthreads 1, and as many as you like with --nworkers"
        )


def _need_walls(worker: str, active: list, missing: list, *, required: bool) -> None:
    if missing and required:
        raise NoWalls(
            f"--require-isolation: the worker {worker} lacks {'; '.join(missing)}. `python -m "
            "autograde doctor` says on that machine what would help"
        )
    if not active:
        note_no_walls(f"the worker {worker}")
