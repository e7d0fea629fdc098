"""Stopped at any moment and run again, by one worker or by two: the same gradebook.

The class is graded by a process of its own, with the pretended engine made slow, so that it can be
killed in the middle.
"""

import io
import json
import os
import re
import signal
import sqlite3
import threading
import time

import pytest

from autograde.executors import default_workers
from autograde.grade import grade_chapter
from autograde.lock import Busy, alone
from autograde.progress import counter, spoken
from autograde.record import gradebook, scores

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x", "row_means": "def row_means(x):\n    pass"}
ROW_MEANS = "def row_means(x):\n    return x.mean(-1)"
ALL = ("right", "wrong", "stops", "helped", "nothing")
WRONG = {"double": "def double(x):\n    return wrong"}
EXPLODES = {"double": "def double(x):\n    explode"}


@pytest.fixture
def a_class(class_of, filled):
    """Forty learners: right, wrong, blank, one whom the engine cannot take, one unreadable."""
    notebooks = {
        "right": filled(**RIGHT, why="Other axes."),
        "wrong": filled(**WRONG),
        "blank": filled(),
        "explodes": filled(**EXPLODES),
        "broken": b"{",
    }
    return class_of(**{f"{kind}{n}": book for kind, book in notebooks.items() for n in range(8)})


@pytest.fixture
def driver(a_class, grader):
    """Starts `grade` on the class in a process of its own; the caller ends it."""
    return lambda: grader(a_class)


def everything(folder):
    """All that a run leaves: the gradebook's rows without their random ids, records, notebooks."""
    with sqlite3.connect(folder.gradebook) as db:
        grades, comments = (
            sorted(
                db.execute(
                    f"select s.student_id, s.timestamp, c.name, {columns} from {table} t "
                    "join base_cell c on t.cell_id = c.id "
                    "join submitted_notebook n on t.notebook_id = n.id "
                    "join submitted_assignment s on n.assignment_id = s.id"
                )
            )
            for table, columns in [
                ("grade", "t.auto_score, t.manual_score, t.needs_manual_grade"),
                ("comment", "t.auto_comment, t.manual_comment"),
            ]
        )
    files = {
        str(path.relative_to(folder.root)): path.read_text()
        for part in ("records", "autograded")
        for path in (folder.root / part).rglob("*.*")
        if not path.name.startswith(".new-")  # a file that a kill left half-written
    }
    return grades, comments, files


@pytest.fixture
def uninterrupted(a_class, course, engine, tmp_path):
    """What one worker leaves that nobody stops: taken in place, and put aside."""

    def run(**options):
        for name in ("records", "autograded"):
            if (a_class.root / name).exists():
                (a_class.root / name).rename(tmp_path / f"{name}-{time.monotonic_ns()}")
        with gradebook(a_class) as book:
            for sent in book.assignment_submissions(SLUG):
                book.remove_submission(SLUG, sent.student.id)
        outcome = grade_chapter(a_class, SLUG, course=course, engine=engine, **options)
        assert (len(outcome.graded), len(outcome.problems)) == (24, 16)
        return everything(a_class)

    return run


# Killed, and run again


def test_killed_in_the_middle_and_run_again_the_gradebook_is_the_same(
    driver, a_class, uninterrupted, until_recorded, recorded
):
    for number in (3, 17):  # killed twice, in different places
        process = driver()
        until_recorded(a_class, number)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert number <= recorded(a_class) < 40
    done = driver()
    said, _ = done.communicate(timeout=120)
    assert done.returncode == 1  # some cannot be graded, as they should
    assert "16 could not be graded" in said
    found = everything(a_class)
    assert found == uninterrupted()
    assert len(found[0]) == 24 * 4


def test_killed_between_the_gradebook_and_the_record_nothing_is_lost(
    a_class, course, engine, uninterrupted
):
    expected = uninterrupted()
    a_class.record("right3", SLUG).unlink()
    outcome = grade_chapter(a_class, SLUG, course=course, engine=engine)
    assert "right3" in outcome.graded
    assert everything(a_class) == expected


def test_ctrl_c_records_what_is_under_way_and_says_how_to_go_on(
    driver, a_class, until_recorded, recorded
):
    process = driver()
    until_recorded(a_class, 5)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    done = recorded(a_class)
    assert f"stopped: {done} of 40 submissions of {SLUG} are done and kept" in said
    assert "run the same command to go on" in said
    assert "Traceback" not in said
    # nobody was given up because of the Ctrl-C, and each graded one has its record
    records = [json.loads(p.read_text()) for p in (a_class.root / "records").rglob("*.json")]
    graded = {one["student"] for one in records if one["graded"]}
    assert graded == set(scores(a_class, SLUG))
    assert all(one["graded"] or one["student"][:6] in ("explod", "broken") for one in records)


# One worker or two


@pytest.mark.parametrize("workers", [2, 5])
def test_more_workers_leave_the_same(uninterrupted, workers):
    assert uninterrupted(workers=workers) == uninterrupted(workers=1)


def test_two_real_engines_find_what_one_finds(class_of, filled, course):
    """Honest work only: right, wrong, stopping with an error, with a helper, and nothing."""
    helped = filled(double="def double(x):\n    return twice(x)", row_means=ROW_MEANS)
    helped.cells.insert(
        0, {"cell_type": "code", "metadata": {}, "source": "def twice(x):\n    return x + x"}
    )
    folder = class_of(
        right=filled(double=RIGHT["double"], row_means=ROW_MEANS, why="Other axes."),
        wrong=filled(double="def double(x):\n    return x", row_means=RIGHT["row_means"]),
        stops=filled(double="def double(x):\n    return x.nothing", row_means=ROW_MEANS),
        helped=helped,
        nothing=filled(),
    )
    found = []
    for workers in (1, 2):
        outcome = grade_chapter(folder, SLUG, course=course, again=True, workers=workers)
        assert (len(outcome.graded), outcome.problems) == (5, {})
        grades, comments, files = everything(folder)
        files = {name: re.sub(r'"seconds": [\d.e-]+', "", text) for name, text in files.items()}
        found.append((grades, comments, files))
    assert found[0] == found[1]
    totals = {one: sum(score.points for score in scores(folder, SLUG)[one].values()) for one in ALL}
    assert totals == {"right": 6.0, "wrong": 0.0, "stops": 3.0, "helped": 6.0, "nothing": 0.0}


def test_each_worker_has_an_engine_of_its_own(a_class, course, engine):
    together = threading.Barrier(3, timeout=30)
    used_by = {}

    class Own(engine):
        def __enter__(self):
            used_by[self] = set()
            if len(used_by) <= 3:  # later ones come after one that exploded
                together.wait()  # as many as there are workers are there at once, or this fails
            return self

        def run(self, *arguments, **options):
            used_by[self].add(threading.get_ident())
            return super().run(*arguments, **options)

    outcome = grade_chapter(a_class, SLUG, course=course, engine=Own, workers=3)
    assert len(outcome.graded) == 24
    assert {len(threads) for threads in used_by.values()} == {1}


def test_workers_are_a_number(command, a_class, capsys):
    for wrong in ("0", "-1", "many"):
        with pytest.raises(SystemExit) as stopped:
            command("grade", "--workers", wrong, "--class-dir", a_class.root)
        assert stopped.value.code == 2
        assert "is not a number of workers" in capsys.readouterr().err
    assert 1 <= default_workers() <= 8


# Two graders at once


def test_a_second_grader_is_told_who_holds_the_class(
    driver, a_class, command, capsys, until_recorded
):
    process = driver()
    until_recorded(a_class, 2)
    assert command("grade", "--class-dir", a_class.root) == 2
    said = capsys.readouterr().err
    assert f"process {process.pid} is grading {a_class.root} already" in said
    assert f"`kill {process.pid}`" in said
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with alone(a_class):  # killed, it holds nothing any more
        pass


def test_the_class_is_free_again_after_an_error(a_class):
    with alone(a_class), pytest.raises(Busy, match=f"process {os.getpid()} "), alone(a_class):
        pass
    with pytest.raises(KeyError), alone(a_class):
        raise KeyError
    with alone(a_class):
        pass


# How far it is


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_terminal_is_told_how_many_how_fast_and_how_long_yet():
    times = iter([0.0, 0.0, 4.0, 10.0])
    stream = Terminal()
    show = counter("grading 90", stream, lambda: next(times))
    show("", 0, 100)
    show("ada", 8, 100)
    show("zoe", 100, 100)
    assert stream.getvalue().split("\r\x1b[K") == [
        "",
        "grading 90: 0 of 100",
        "grading 90: 8 of 100, 2.0 a second, 46 s left",
        "",
    ]


def test_a_file_is_told_nothing():
    stream = io.StringIO()
    counter("grading 90", stream)("ada", 1, 2)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_a_duration_is_said_as_one_reads_it(seconds, said):
    assert spoken(seconds) == said
