"""Where answers are run is the command line's choice, and nothing else depends on it."""

import argparse
import subprocess
import sys

import pytest

from autograde.chapters import ROOT
from autograde.executors import NoCluster, add_executor, default_workers, executor
from autograde.grade import grade_chapter
from autograde.record import scores
from autograde.run import Engine, Limits, NowhereToRun, WorkerError

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x", "row_means": "def row_means(x):\n    pass"}


def asked(*words):
    parser = argparse.ArgumentParser()
    add_executor(parser)
    return parser.parse_args(words)


def test_the_default_is_this_machine_with_an_engine_a_processor():
    with executor(asked(), Limits()) as there:
        assert there == {"workers": default_workers()}  # the engine is grade_chapter's own
    with executor(asked("--workers", "3"), Limits(cpu=9)) as there:
        engine = there.pop("engine")()
        assert there == {"workers": 3}
    assert isinstance(engine, Engine)
    assert engine.limits == Limits(cpu=9)


def test_nothing_of_a_cluster_is_imported_until_it_is_asked_for():
    code = (
        "import sys; from autograde import cli, grade, regrade, record; "
        "print({'dask', 'distributed', 'psycopg', 'torch'} & set(sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout == "set()\n"


def test_without_the_extra_it_says_how_to_have_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "autograde.cluster", raising=False)
    with (
        pytest.raises(NoCluster, match=r"needs the extra `cluster` .*-e '\.\[cluster\]'"),
        executor(asked("--scheduler", "tcp://127.0.0.1:1"), Limits()),
    ):
        pass


@pytest.fixture
def a_class(class_of, filled):
    return class_of(**{f"s{n}": filled(**RIGHT) for n in range(6)})


def failing(engine, error):
    """An engine that judges one submission, and then fails."""

    class Failing(engine):
        judged = 0

        def run(self, *arguments, **options):
            type(self).judged += 1
            if self.judged > 1:
                raise error
            return super().run(*arguments, **options)

    return Failing


@pytest.mark.parametrize("workers", [1, 3])
def test_an_engine_with_nowhere_to_run_ends_the_run_and_nobody_is_blamed(
    a_class, course, engine, workers
):
    there = {"engine": failing(engine, NowhereToRun("the scheduler is gone")), "workers": workers}
    with pytest.raises(NowhereToRun, match="the scheduler is gone"):
        grade_chapter(a_class, SLUG, course=course, **there)
    assert len(list((a_class.root / "records").rglob("*.json"))) <= 1
    outcome = grade_chapter(a_class, SLUG, course=course, engine=engine)
    assert len(outcome.graded) + len(outcome.unchanged) == 6
    assert len(scores(a_class, SLUG)) == 6


def test_an_engine_that_breaks_over_one_submission_costs_that_one(a_class, course, engine):
    there = failing(engine, WorkerError("2 workers of the cluster ended over it"))
    outcome = grade_chapter(a_class, SLUG, course=course, engine=there)
    assert len(outcome.graded) == 1
    assert all("ended over it" in reason for reason in outcome.problems.values())


def test_the_command_says_so_and_exits_with_1(a_class, command, engine, monkeypatch, capsys):
    there = failing(engine, NowhereToRun("the scheduler is gone; what is graded is kept"))
    monkeypatch.setitem(grade_chapter.__kwdefaults__, "engine", there)
    assert command("grade", "--class-dir", a_class.root) == 1
    assert capsys.readouterr().err == "autograde: the scheduler is gone; what is graded is kept\n"
