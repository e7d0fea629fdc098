"""On a Dask cluster the same gradebook comes out as here, even when workers die.

The cluster is real: a scheduler and two workers, processes of this machine, with real engines. An
answer that names `end_of_the_worker` kills the Dask worker that is asked to run it.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from autograde.chapters import ROOT
from autograde.cluster import Grader, connected, same_here, told
from autograde.engine.trial import verdict as made_by_the_engine
from autograde.executors import NoCluster
from autograde.grade import grade_chapter
from autograde.record import scores
from autograde.run import Limits, NowhereToRun, WorkerError

SLUG = "90-example"
MEANS = "def row_means(x):\n    return x.mean(-1)"
SLOWLY = "import time\n\ndef double(x):\n    time.sleep(0.2)\n    return {}"
FRAGILE = """
import os, signal
from autograde import cluster

class Fragile(cluster.Engine):
    def exchange(self, request):
        if any("end_of_the_worker" in task["answer"] for task in request["exercises"]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().exchange(request)

cluster.Engine = Fragile
"""


def _start(*words, log):
    """One of Dask's programs, as the page says to start it."""
    with log.open("wb") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--no-dashboard"],
            cwd=ROOT,
            stderr=stderr,
            start_new_session=True,
            env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"},
        )


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Start a scheduler: its address. Or a worker of one."""
    folder, started = tmp_path_factory.mktemp("dask"), []
    fragile = folder / "fragile.py"
    fragile.write_text(FRAGILE)

    def run(address=None, *options):
        log = folder / f"{len(started)}.log"
        if address is None:
            started.append(_start("scheduler", "--host", "127.0.0.1", "--port", "0", log=log))
            return _address(log, started[-1])
        words = ("worker", address, "--preload", str(fragile), *(options or ("--nthreads", "1")))
        started.append(_start(*words, "--local-directory", str(folder), log=log))
        return started[-1]

    run.processes = started
    yield run
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _address(log, process):
    """What the scheduler says on standard error when it is there."""
    while process.poll() is None:
        if found := re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def address(start):
    """A scheduler with two workers, whose nannies start them anew when they die."""
    address = start()
    for _ in range(2):
        start(address)
    return address


@pytest.fixture
def cluster(address):
    with connected(address, limits=Limits(), required=False) as cluster:
        cluster._client.wait_for_workers(2, timeout=60)
        yield cluster


def left(folder):
    """What a run leaves, without how long a test took."""
    files = {
        str(path.relative_to(folder.root)): re.sub(r'"seconds": [\d.e-]+', "", path.read_text())
        for part in ("records", "autograded")
        for path in (folder.root / part).rglob("*.*")
    }
    return scores(folder, SLUG), files


@pytest.fixture
def a_class(class_of, filled):
    """Ten learners: slow and right, slow and wrong, not written, stopping with an error."""
    notebooks = {
        "right": filled(double=SLOWLY.format("2 * x"), row_means=MEANS, why="Other axes."),
        "wrong": filled(double=SLOWLY.format("x"), row_means=MEANS),
        "blank": filled(),
        "stops": filled(double="def double(x):\n    return x.nothing"),
        "unread": b"{",
    }
    return class_of(**{f"{kind}{n}": book for kind, book in notebooks.items() for n in range(2)})


def test_a_worker_killed_in_mid_run_changes_nothing(a_class, course, cluster):
    grade_chapter(a_class, SLUG, course=course)
    expected = left(a_class)
    totals = {one: sum(s.points for s in line.values()) for one, line in expected[0].items()}
    assert (totals["right0"], totals["wrong0"], totals["blank0"]) == (6, 3, 0)
    pids = list(cluster._client.run(os.getpid).values())

    def kill_one(_student, done, _of):
        if done == 3:
            os.kill(pids[0], signal.SIGKILL)

    outcome = grade_chapter(
        a_class,
        SLUG,
        course=course,
        again=True,
        engine=cluster.engine,
        workers=cluster.workers,
        progress=kill_one,
    )
    assert len(outcome.graded) == 8
    assert set(outcome.problems) == {"unread0", "unread1"}
    assert left(a_class) == expected
    assert pids[0] not in cluster._client.run(os.getpid).values()  # it was killed indeed


def test_an_answer_that_ends_every_worker_is_a_row_of_its_own(class_of, filled, course, cluster):
    folder = class_of(
        ada=filled(double="def double(x):\n    return 2 * x", row_means=MEANS),
        bad=filled(double="def double(x):\n    return end_of_the_worker"),
        zoe=filled(double="def double(x):\n    return x + x", row_means=MEANS),
    )
    outcome = grade_chapter(folder, SLUG, course=course, engine=cluster.engine, workers=1)
    assert outcome.graded == ["ada", "zoe"]
    assert "2 workers of the cluster ended over it" in outcome.problems["bad"]


def test_the_command_grades_on_a_cluster(class_of, filled, command, address, capsys):
    folder = class_of(ada=filled(double="def double(x):\n    return 2 * x", row_means=MEANS))
    assert command("grade", "--scheduler", address, "--class-dir", folder.root) == 0
    assert "1 graded" in capsys.readouterr().out
    assert command("regrade", "90", "--scheduler", address, "--class-dir", folder.root) == 0
    assert "1 judged again, 0 would change" in capsys.readouterr().out


# What is refused


def test_nobody_at_the_address(class_of, filled, command, capsys, monkeypatch):
    monkeypatch.setattr("autograde.cluster.CONNECT", 1)
    folder = class_of(ada=filled())
    for nowhere in ("tcp://127.0.0.1:1", "127.0.0.1:1", "http://127.0.0.1:1", "tcp://nowhere"):
        assert command("grade", "--scheduler", nowhere, "--class-dir", folder.root) == 2
        said = capsys.readouterr().err
        assert f"--scheduler {nowhere}: no Dask scheduler answers there" in said
        assert "`python -m dask scheduler`" in said


def test_a_scheduler_without_workers(start):
    lonely = start()
    with (
        pytest.raises(NoCluster, match=r"has no workers\. Start some"),
        connected(lonely, limits=Limits(), required=False, patience=0.5),
    ):
        pass


def test_a_worker_with_other_code_is_refused(address, cluster, monkeypatch):
    other = {**same_here(), "torch": "1.0", "the course's code": "0123456789ab"}
    monkeypatch.setattr("autograde.cluster.same_here", lambda: other)
    with (
        pytest.raises(NoCluster, match=r"torch 2\S+ \(here 1\.0\)") as refused,
        connected(address, limits=Limits(), required=False),
    ):
        pass
    assert "(here 0123456789ab)" in str(refused.value)
    assert "numpy" not in str(refused.value)


def test_a_worker_with_several_threads_is_refused(start):
    address = start()
    start(address, "--nthreads", "3", "--no-nanny")
    with (
        pytest.raises(NoCluster, match="has 3 threads and one engine; start it with --nthreads 1"),
        connected(address, limits=Limits(), required=False),
    ):
        pass


def test_a_scheduler_that_goes_away_ends_the_run_and_loses_nothing(start, a_class, course, engine):
    address = start()
    scheduler = start.processes[-1]
    start(address, "--nthreads", "1", "--no-nanny")

    def end(_student, done, _of):
        if done == 3:
            os.kill(scheduler.pid, signal.SIGKILL)

    with (
        connected(address, limits=Limits(), required=False) as cluster,
        pytest.raises(NowhereToRun, match=r"cannot be reached any more; what is graded is kept"),
    ):
        grade_chapter(a_class, SLUG, course=course, engine=cluster.engine, progress=end)
    records = [json.loads(path.read_text()) for path in (a_class.root / "records").rglob("*.json")]
    assert len(records) in (3, 4)  # nobody was written down as ungradable for it
    assert not any("scheduler" in (one["reason"] or "") for one in records)
    done = grade_chapter(a_class, SLUG, course=course, engine=engine)
    assert len(done.graded) + len(done.unchanged) == 8
    assert done.unchanged


def test_no_result_of_a_worker_is_unpickled(cluster):
    """fractions.Fraction is harmless; what it shows is that nothing but plain data is decoded."""
    made = cluster._client.submit(Fraction, 1, 2, pure=False)
    with pytest.raises(TypeError, match="only able to deserialize"):
        made.result(timeout=30)
    assert cluster._client.submit(bytes, 2, pure=False).result(timeout=30) == b"\0\0"


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"[" * 100_000,
        b"[]",
        b'{"told": [1]}',
        b'{"told": [{"test": "b", "state": "pass"}]}',
        b'{"told": [{"test": "a"}]}',
        b'{"told": [{"test": ["a"], "state": "pass"}]}',
        b'{"told": [{"test": "a", "state": "pass", "seconds": "1"}]}',
        b'{"told": [{"test": "a", "state": ["pass"]}]}',
        b'{"told": [{"test": "a", "state": "pass", "points": 99}]}',
        b'{"told": [{"test": "a", "state": "pass", "message": 1}]}',
        b" " * (16 * 2**20 + 1),
        "text",
    ],
)
def test_a_reply_of_another_shape_is_no_verdict(reply):
    with pytest.raises(WorkerError, match="a worker's reply is not"):
        told(reply, {"a"})


def test_a_reply_is_verdicts_or_the_reason_why_there_are_none():
    verdict = made_by_the_engine("a", "out of memory", "the call needed more", "memory")
    assert told(json.dumps({"told": [verdict]}).encode(), {"a"}) == [verdict]
    with pytest.raises(WorkerError, match="no torch"):
        told(b'{"failed": "no torch"}', {"a"})


def test_a_graders_engine_that_fails_is_told_and_replaced():
    made = []

    class Failing:
        def __init__(self, limits, *, isolation):
            made.append((limits, isolation))

        def exchange(self, request):
            raise RuntimeError("no torch here")

        def __exit__(self, *_):
            made.append("stopped")

    grader = Grader()
    grader.setup(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograde.cluster.Engine", Failing)
        for _ in range(2):
            reply = grader.answer(question(same_here()))
            assert json.loads(reply) == {"failed": "no torch here"}
    assert made == [(Limits(cpu=1), "jail"), "stopped"] * 2


def question(same):
    engine = {"limits": {"cpu": 1}, "isolation": "jail"}
    return json.dumps({"engine": engine, "same": same}).encode()


def test_a_worker_that_comes_late_with_other_code_judges_nothing():
    grader = Grader()
    grader.setup(None)
    reply = grader.answer(question({**same_here(), "torch": "1.0"}))
    with pytest.raises(NowhereToRun, match="joined that has another state of the course"):
        told(reply, {"a"})
