"""Run answers against the tests of a chapter: the driver's side of the engine.

`Engine.run` takes sources and returns verdicts. The driver holds the hidden tests and imports no
torch; what runs where is told in `autograde.engine`.
"""

import ast
import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from autograde.chapters import ROOT
from autograde.engine.outer import outer_command
from autograde.lint import forbidden, reached
from autograde.source import Chapter, Exercise
from autograde.syntax import parse

PASS, FAIL, ERROR, TIMEOUT, KILLED = "pass", "fail", "error", "timeout", "killed"
MEMORY = "out of memory"
NOT_WRITTEN = "not written"
SETUP = "setup"  # the rule broken where the chapter's own setup cell stops
ROUNDS = 6  # jails for one submission: an answer may take down the whole of one


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one test may use, counted from its start."""

    cpu: float = 5  # seconds of processor time
    wall: float = 15  # seconds on the clock
    memory: float = 2.0  # GiB above what the warm process has mapped
    timeouts: int = 3  # exercises of one submission that may hang; later ones are not tried


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one test cell."""

    test: str
    exercise: str
    points: float
    state: str
    message: str = ""
    rule: str | None = None
    mistake: str | None = None
    seconds: float = 0.0
    part: str | None = None  # where a test failed: "visible", "hidden", "before" it; None: unknown

    @property
    def score(self) -> float:
        return self.points if self.state == PASS else 0.0


class SetupFailed(ValueError):
    """The chapter's own setup cell does not run here, so no answer can be judged."""


class WorkerError(RuntimeError):
    """The grading worker did not start, or ended; the message says what to do."""


class NowhereToRun(WorkerError):
    """No submission can be run any more, neither this one nor another: the whole run stops."""


def need_setup(verdicts: Iterable[Verdict]) -> None:
    """Raise SetupFailed when these verdicts say nothing about an answer."""
    for verdict in verdicts:
        if verdict.rule == SETUP:
            raise SetupFailed(verdict.message)


class Engine:
    """A warm worker process; use it as a context manager, from one thread.

    `isolation="jail"` walls answers in as far as this machine can, "required" judges nothing where
    a wall is missing; "none" is for one's own work.
    """

    def __init__(self, limits: Limits | None = None, *, isolation: str = "jail"):
        self.limits = limits or Limits()
        slot = secrets.randbelow(9000)  # a user id of its own: other graders may run beside
        self._options = {"isolation": isolation, "slot": slot, "memory": self.limits.memory}
        self._process: subprocess.Popen | None = None
        self._warm: tuple[str, ...] = ()

    def __enter__(self):
        return self  # it starts with the first submission, whose chapter says what to import

    def __exit__(self, *_):
        self._stop()

    def run(
        self,
        chapter: Chapter,
        answers: Mapping[str, str],
        *,
        exercises: Sequence[str] | None = None,
        visible_only: bool = False,
        extra: Sequence[str] = (),
        seed: str = "",
    ) -> dict[str, Verdict]:
        """Judge the answers (exercise id -> source of its cell); a missing one is the stub.

        `extra` are cells that the learner added: those that an answer needs are run before it, and
        forgiven if broken. From `seed` come the random numbers of a test that sets no seed itself.
        """
        chosen = list(chapter.exercises) if exercises is None else list(exercises)
        work = [chapter.exercises[one] for one in chosen]
        found: dict[str, Verdict] = {}
        tasks = []
        for exercise in work:
            answer = answers.get(exercise.id, exercise.cell.stub_text)
            if used := forbidden(answer, exercise.forbid, extra):
                found |= _refused(exercise, used)
            else:
                tasks.append(_task(exercise, answer, visible_only, extra))
        found |= self._judge(chapter, tasks, seed)
        tests = [test.id for exercise in work for test in exercise.tests]
        return {test: found[test] for test in tests}

    def _judge(self, chapter: Chapter, tasks: list[dict], seed: str) -> dict[str, Verdict]:
        """Ask until every test has its verdict; a lost jail is followed by another."""
        of = {test.id: (one, test) for one in chapter.exercises.values() for test in one.tests}
        found: dict[str, Verdict] = {}
        limits = asdict(self.limits)
        for _ in range(ROUNDS):
            left = [_without(task, found) for task in tasks]
            left = [task for task in left if task["tests"]]
            if not left:
                return found
            hung = {v.exercise for v in found.values() if v.state == TIMEOUT}
            limits["timeouts"] = self.limits.timeouts - len(hung)
            before = len(found)
            for told in self._ask(chapter, left, limits, seed):
                exercise, test = of[told["test"]]
                points = float(test.header["points"])
                found[test.id] = Verdict(exercise=exercise.id, points=points, **told)
            if len(found) == before:  # the judge itself went silent over the first of them
                found |= _lost(left[0], of)
        for task in [_without(task, found) for task in tasks]:
            found |= _lost(task, of)
        return found

    def _ask(self, chapter: Chapter, tasks: list[dict], limits: dict, seed: str) -> Iterator[dict]:
        """The verdicts of one round, as they fall."""
        return self.exchange(
            {
                "setup": [cell.text for cell in chapter.setup],
                "secret": _secret(chapter, seed),
                "limits": limits,
                "exercises": tasks,
            }
        )

    def exchange(self, request: dict) -> Iterator[dict]:
        """One question and its answers, in plain values: all that the worker is ever told."""
        self._ready(request["setup"])
        ours, theirs = socket.socketpair()
        tests = sum(len(task["tests"]) for task in request["exercises"])
        longest = 30 + tests * (request["limits"]["wall"] + 7)
        with ours:
            order = json.dumps({"longest": longest}).encode() + b"\n"
            try:
                socket.send_fds(self._socket, [order], [theirs.fileno()])
            except OSError:
                raise WorkerError(ENDED) from None
            theirs.close()
            with ours.makefile("rw", encoding="utf-8") as stream:
                try:
                    stream.write(json.dumps(request) + "\n")
                    stream.flush()
                    for line in stream:
                        told = json.loads(line)
                        if "end" not in told:
                            yield told
                except (OSError, ValueError):  # the judge died over it: another round follows
                    pass
        if not self._lines.readline():
            raise WorkerError(ENDED)

    def _ready(self, setup: Sequence[str]) -> None:
        """A worker that runs, and has the modules of the chapter's setup imported."""
        needed = tuple(sorted({*self._warm, *_modules(setup)}))
        alive = self._process is not None and self._process.poll() is None
        if not alive or needed != self._warm:
            self._stop()
            self._warm = needed
            self._start()

    def _start(self) -> None:
        env = {name: os.environ[name] for name in TOLD if name in os.environ} | {
            "OMP_NUM_THREADS": "1",  # a process with threads must not be forked
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "MPLBACKEND": "Agg",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "lib")]),
            "PYTHONHASHSEED": "0",
            "TRITON_INTERPRET": "1",  # read when triton is imported, which an optimiser does
        }
        self._socket, theirs = socket.socketpair()
        options = json.dumps({**self._options, "warm": list(self._warm)})
        command = [sys.executable, "-m", "autograde.engine.worker", str(theirs.fileno()), options]
        walled = self._options["isolation"] != "none"
        self._process = subprocess.Popen(
            outer_command(command) if walled else command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=env,
        )
        theirs.close()
        self._lines = self._socket.makefile("rb")
        said = self._lines.readline()
        if not said:
            self._stop()
            raise WorkerError(
                "the grading worker did not start: is torch installed in this environment? "
                "`python -m autograde doctor` tells"
            )
        missing = json.loads(said)["missing"]
        if missing and self._options["isolation"] == "required":
            self._stop()
            raise WorkerError(
                f"--require-isolation: the grading worker lacks {'; '.join(missing)}; "
                "`python -m autograde doctor` says what would help"
            )

    def _stop(self) -> None:
        if self._process is not None:
            self._lines.close()
            self._socket.close()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


# Of the environment the worker is told this only: its memory is what an answer begins with.
TOLD = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV",
    "PLAINFORMER_CACHE",
)  # fmt: skip
ENDED = "the grading worker ended; run `python -m autograde doctor`"


def _task(exercise: Exercise, answer: str, visible_only: bool, extra: Sequence[str]) -> dict:
    tests = [
        {
            "id": test.id,
            "code": test.visible_text if visible_only else test.solution_text,
            "visible": None if visible_only else test.visible_lines,
            "inside": test.header.get("judge") == "inproc",
        }
        for test in exercise.tests
    ]
    needed = reached(answer, extra)  # another exercise's helper may hang, or end the process
    return {
        "id": exercise.id,
        "names": sorted(exercise.defines),
        "answer": answer,
        "extra": [cell for cell in extra if cell in needed],
        "forbid": list(exercise.forbid),
        "tests": tests,
    }


def _without(task: dict, found: Mapping[str, Verdict]) -> dict:
    return {**task, "tests": [test for test in task["tests"] if test["id"] not in found]}


def _refused(exercise: Exercise, used: list[str]) -> dict[str, Verdict]:
    text = f"the answer uses {', '.join(used)}, which this exercise asks you to do without"
    return {
        test.id: Verdict(
            test.id,
            exercise.id,
            points=float(test.header["points"]),
            state=FAIL,
            message=text,
            rule="forbidden",
            part="before",
        )
        for test in exercise.tests
    }


def _lost(task: dict, of: Mapping) -> dict[str, Verdict]:
    """Tests that brought down their judge: the answer's own loss, and nobody else's."""
    text = "the check was stopped from outside; the answer took more than a check can hold"
    return {
        one["id"]: Verdict(
            one["id"], task["id"], float(of[one["id"]][1].header["points"]), KILLED, text
        )
        for one in task["tests"]
    }


def _modules(setup: Sequence[str]) -> set[str]:
    """What the chapter's own setup imports: imported once, before the forks."""
    nodes = [node for text in setup for node in ast.walk(parse(text))]
    found = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:  # its names may be modules too
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _secret(chapter: Chapter, seed: str) -> str:
    """Seeds of a test's own random numbers: as hidden as the hidden tests, and as `seed`."""
    told = [seed, *(cell.text for cell in chapter.cells)]
    return hashlib.sha256("".join(told).encode()).hexdigest()
