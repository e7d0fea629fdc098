"""Grading a class: every submission ends as a row, whatever the others do; nothing is done twice.

The engine here only pretends (see conftest); `test_sample_class.py` grades with the real one.
"""

import argparse
import json
import subprocess
import sys

import pytest

import autograde.grade
from autograde.chapters import ROOT
from autograde.explain import add_explain
from autograde.grade import add_grade, grade_chapter
from autograde.record import gradebook, scores
from autograde.report import add_report, table
from autograde.run import Engine, Limits
from autograde.status import add_status

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x", "row_means": "def row_means(x):\n    pass"}
WRONG = {"double": "def double(x):\n    return wrong"}
EXPLODES = {"double": "def double(x):\n    explode"}


@pytest.fixture
def grade(course, engine):
    def run(folder, **options):
        return grade_chapter(folder, SLUG, course=course, engine=engine, **options)

    return run


@pytest.fixture
def command(course, engine, monkeypatch):
    """Run a command as `python -m autograde` would, on the example course."""
    for module in ("grade", "report", "status", "explain"):
        monkeypatch.setattr(f"autograde.{module}.Course", lambda: course)
    monkeypatch.setattr(
        autograde.grade.grade_chapter,
        "__kwdefaults__",
        {
            **autograde.grade.grade_chapter.__kwdefaults__,
            "engine": engine,
        },
    )
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for add in (add_grade, add_report, add_status, add_explain):
        add(commands)

    def run(*words):
        args = parser.parse_args([*map(str, words)])
        return args.run(args)

    return run


def points(folder, student):
    return sum(score.points for score in scores(folder, SLUG)[student].values())


# Nobody stops the class


def test_one_bad_submission_after_another_never_stops_the_class(grade, class_of, filled):
    folder = class_of(
        ada=filled(**RIGHT),
        broken=b"{",
        empty=b"",
        explodes=filled(**EXPLODES),
        zoe=filled(**RIGHT),
    )
    (folder.submission("nothing", SLUG)).mkdir(parents=True)
    outcome = grade(folder)
    assert outcome.graded == ["ada", "zoe"]
    assert set(outcome.problems) == {"broken", "empty", "explodes", "nothing"}
    assert points(folder, "zoe") == 6.0


def test_the_reason_tells_the_teacher_what_to_do(grade, class_of, filled):
    folder = class_of(broken=b"{", explodes=filled(**EXPLODES))
    problems = grade(folder).problems
    assert "not valid JSON" in problems["broken"]
    assert "RuntimeError: the worker ended" in problems["explodes"]
    assert "grade it by hand" in problems["explodes"]


def test_what_could_not_be_graded_is_no_zero_in_the_gradebook(grade, class_of, filled):
    folder = class_of(ada=filled(**RIGHT), broken=b"{")
    grade(folder)
    assert set(scores(folder, SLUG)) == {"ada"}


def test_the_engine_is_started_anew_after_it_failed_and_not_otherwise(
    grade, class_of, filled, engine
):
    folder = class_of(a=filled(**RIGHT), b=filled(**EXPLODES), c=filled(**RIGHT), d=filled(**RIGHT))
    grade(folder)
    assert engine.started == 2


def test_a_better_submission_after_an_unreadable_one_is_graded(grade, class_of, filled):
    folder = class_of(ada=b"{")
    assert grade(folder).problems
    class_of(ada=filled(**RIGHT))
    assert grade(folder).graded == ["ada"]
    assert points(folder, "ada") == 6.0


# Nothing is done twice, nothing is lost


def test_unchanged_work_is_not_run_again_unless_asked_for(grade, class_of, filled, engine):
    folder = class_of(ada=filled(**RIGHT))
    grade(folder)
    assert (grade(folder).unchanged, engine.started) == (["ada"], 1)
    assert (grade(folder, again=True).graded, engine.started) == (["ada"], 2)


def test_only_the_changed_submission_is_graded_again(grade, class_of, filled):
    folder = class_of(ada=filled(**RIGHT), bob=filled(**WRONG))
    grade(folder)
    class_of(bob=filled(**RIGHT))
    outcome = grade(folder)
    assert (outcome.graded, outcome.unchanged) == (["bob"], ["ada"])
    assert points(folder, "bob") == 6.0


@pytest.mark.parametrize("lost", ["record", "autograded", "gradebook", "score"])
def test_what_was_lost_by_a_crash_is_made_again(grade, class_of, filled, lost):
    folder = class_of(ada=filled(**RIGHT))
    grade(folder)
    match lost:
        case "record":
            folder.record("ada", SLUG).unlink()
        case "autograded":
            folder.autograded("ada", SLUG).unlink()
        case "gradebook":
            folder.gradebook.unlink()
        case "score":
            with gradebook(folder) as book:
                book.remove_submission(SLUG, "ada")
    assert grade(folder).graded == ["ada"]
    assert points(folder, "ada") == 6.0


def test_the_submission_itself_stays_untouched(grade, class_of, filled):
    folder = class_of(ada=filled(**RIGHT))
    path = folder.submission("ada", SLUG) / f"{SLUG}.ipynb"
    before = path.read_bytes(), path.stat().st_mtime_ns
    grade(folder)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_another_look_is_asked_for_only_when_the_work_is_new(grade, class_of, filled):
    folder = class_of(ada=filled(**RIGHT, why="Other axes."))
    grade(folder)
    with gradebook(folder) as book:
        score = book.find_grade("90-why", SLUG, SLUG, "ada")
        score.manual_score, score.needs_manual_grade = 2.0, False
        book.db.commit()
    grade(folder, again=True)
    assert not scores(folder, SLUG)["ada"]["90-why"].needs_manual_grade
    class_of(ada=filled(**RIGHT, why="I changed my mind."))
    grade(folder)
    again = scores(folder, SLUG)["ada"]["90-why"]
    assert (again.points, again.needs_manual_grade) == (2.0, True)


def test_one_student_can_be_graded_alone(grade, class_of, filled):
    folder = class_of(ada=filled(**RIGHT), bob=filled(**RIGHT))
    assert grade(folder, student="bob").graded == ["bob"]
    assert set(scores(folder, SLUG)) == {"bob"}


def test_progress_is_told_before_each_submission(grade, class_of, filled):
    told = []
    folder = class_of(ada=filled(**RIGHT), bob=b"{")
    grade(folder, progress=lambda *what: told.append(what))
    assert told == [("ada", 0, 2), ("bob", 1, 2)]


def test_the_real_engine_takes_what_the_grader_gives_it(class_of, filled, course):
    """An answer that needs a helper, one that hangs: through intake, engine and gradebook."""
    helper = "def twice(x):\n    return x + x"
    notebook = filled(
        double="def double(x):\n    return twice(x)",
        row_means="def row_means(x):\n    while True:\n        pass",
    )
    notebook.cells.insert(0, {"cell_type": "code", "metadata": {}, "source": helper})
    folder = class_of(ada=notebook)
    outcome = grade_chapter(
        folder, SLUG, course=course, engine=lambda: Engine(Limits(cpu=1, wall=5))
    )
    assert outcome.graded == ["ada"]
    line = scores(folder, SLUG)["ada"]
    assert (line["90-double-general"].points, line["90-row-means-by-hand"].points) == (2.0, 0.0)


# The table and the commands


def test_the_table_shows_points_blanks_and_what_a_person_must_read(
    grade, class_of, filled, chapter
):
    folder = class_of(ada=filled(**RIGHT, why="Other axes."), bob=filled(**WRONG), zoe=b"{")
    grade(folder)
    lines = [line.split() for line in str(table(folder, chapter)).splitlines()]
    assert ["ada", "3", "3", "?", "6", "/", "8"] in lines
    assert ["bob", "0", "-", "-", "0", "/", "8"] in lines
    assert any(line[:3] == ["zoe", "not", "graded:"] for line in lines)


def test_grade_tells_the_truth_in_its_exit_status_and_its_json(command, class_of, filled, capsys):
    folder = class_of(ada=filled(**RIGHT))
    assert command("grade", "90", "--class-dir", folder.root, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["chapters"][0]["graded"] == ["ada"]
    assert said["chapters"][0]["rows"][0]["points"] == 6.0
    class_of(bob=b"{")
    assert command("grade", "--class-dir", folder.root) == 1
    said = capsys.readouterr()
    assert "0 graded, 1 unchanged, 1 could not be graded" in said.out
    assert "not graded: bob" in said.err


def test_report_status_and_explain_run_nothing_and_agree(command, class_of, filled, capsys, engine):
    folder = class_of(ada=filled(**WRONG))
    where = ("--class-dir", folder.root, "--json")
    assert command("status", *where) == 1
    assert json.loads(capsys.readouterr().out) == {SLUG: {"ada": "waiting"}}
    command("grade", *where)
    capsys.readouterr()
    assert command("status", *where) == 0
    assert json.loads(capsys.readouterr().out) == {SLUG: {"ada": "graded"}}
    assert command("report", *where) == 0
    assert json.loads(capsys.readouterr().out)["chapters"][0]["rows"][0]["points"] == 0.0
    assert command("explain", "--student", "ada", *where[:2]) == 0
    assert "0/1  90-double-by-hand: fail" in capsys.readouterr().out
    class_of(ada=filled(**RIGHT))
    assert command("status", *where) == 1
    assert json.loads(capsys.readouterr().out) == {SLUG: {"ada": "changed since"}}
    assert engine.started == 1


def test_explain_needs_a_student(command, class_of, capsys):
    assert command("explain", "--class-dir", class_of(ada=b"{}").root) == 2
    assert "--student" in capsys.readouterr().err


def test_the_grader_itself_never_imports_torch():
    """The driver holds the gradebook and the hidden tests; the worker holds torch."""
    code = "import sys, autograde.grade, autograde.sample_class; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
