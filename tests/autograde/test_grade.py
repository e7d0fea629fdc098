"""Grading a class: every submission ends as a row, whatever the others do; nothing is done twice.

The engine here only pretends (see conftest); `test_sample_class.py` grades with the real one.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from autograde.chapters import ROOT
from autograde.grade import grade_chapter
from autograde.record import Recorder, gradebook, scores
from autograde.report import table
from autograde.run import SETUP, Engine, Limits, Verdict
from autograde.source_cells import SourceError

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x", "row_means": "def row_means(x):\n    pass"}
WRONG = {"double": "def double(x):\n    return wrong"}
EXPLODES = {"double": "def double(x):\n    explode"}


@pytest.fixture
def grade(course, engine):
    def run(folder, **options):
        return grade_chapter(folder, SLUG, course=course, engine=engine, **options)

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


def test_a_submission_that_cannot_be_written_down_stops_nobody(
    course, engine, class_of, filled, monkeypatch
):
    folder = class_of(ada=filled(**RIGHT), bob=filled(**RIGHT), zoe=filled(**RIGHT))
    real = Recorder.record

    def record(self, student, *arguments, **options):
        real(self, student, *arguments, **options)
        if student == "bob":
            raise OSError("no room for bob")

    monkeypatch.setattr(Recorder, "record", record)
    outcome = grade_chapter(folder, SLUG, course=course, engine=engine)
    assert outcome.graded == ["ada", "zoe"]
    assert "OSError: no room for bob" in outcome.problems["bob"]


def test_a_folder_whose_name_is_no_text_stops_nobody(command, class_of, filled, capsys):
    folder = class_of(ada=filled(**RIGHT))
    odd = os.fsdecode(b"bo\xe9")  # as an old archive may unpack it
    shutil.copytree(folder.root / "submitted" / "ada", folder.root / "submitted" / odd)
    command("grade", "--class-dir", folder.root, "--json")
    told = json.loads(capsys.readouterr().out)
    (row,) = told["chapters"][0]["rows"]
    assert (row["student"], row["points"]) == ("ada", 6.0)
    (stray,) = told["strays"]
    assert "letters in its name that cannot be written; rename it" in stray["why"]


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


@pytest.fixture
def changing(course, tmp_path):
    """A copy of the course whose source a test may change: changing("old", "new")."""
    copy = type(course)(tmp_path / "course")
    shutil.copytree(course.root, copy.root)

    def change(old, new):
        path = copy.source(SLUG)
        path.write_text(path.read_text().replace(old, new))
        return copy

    return change


def test_a_change_on_our_side_alone_takes_no_marks_away(class_of, filled, engine, changing):
    """The present engine would give ada less; `regrade` shows that, and `grade` leaves it."""
    folder = class_of(ada=filled(**RIGHT))
    grade_chapter(folder, SLUG, course=changing("", ""), engine=engine)
    course = changing("# An example", "# A better example")
    engine._verdict = lambda self, test, exercise, answer: Verdict(test.id, exercise, 1.0, "fail")
    outcome = grade_chapter(folder, SLUG, course=course, engine=engine)
    assert (outcome.outdated, outcome.graded, engine.started) == (["ada"], [], 1)
    assert points(folder, "ada") == 6.0
    assert grade_chapter(folder, SLUG, course=course, engine=engine, outdated=True).graded
    assert points(folder, "ada") == 0.0


@pytest.mark.parametrize(
    "change", [("points: 2", "points: 1"), ("test: 90-row-m", "test: 90-row-means-m")]
)
def test_where_the_tests_changed_all_are_graded_again(
    class_of, filled, engine, changing, fresh_release, monkeypatch, change
):
    monkeypatch.setattr("autograde.record.student_notebook", lambda chapter: fresh_release)
    folder = class_of(ada=filled(**RIGHT))
    grade_chapter(folder, SLUG, course=changing("", ""), engine=engine)
    assert grade_chapter(folder, SLUG, course=changing(*change), engine=engine).graded == ["ada"]
    assert {score.auto for score in scores(folder, SLUG)["ada"].values()} >= {1.0, 3.0}


def test_the_summary_says_whose_marks_are_of_an_earlier_state(command, class_of, filled, capsys):
    folder = class_of(ada=filled(**RIGHT))
    command("grade", "--class-dir", folder.root)
    record = folder.read_record("ada", SLUG)
    folder.write_record({**record, "digest": "other" + record["digest"]})
    capsys.readouterr()
    assert command("grade", "--class-dir", folder.root) == 0
    said = capsys.readouterr().out
    assert "0 graded, 0 unchanged, 0 could not be graded" in said
    assert "1 of 90-example were graded with an earlier state" in said
    assert "`python -m autograde regrade 90`" in said


def test_one_student_can_be_graded_alone(grade, class_of, filled):
    folder = class_of(ada=filled(**RIGHT), bob=filled(**RIGHT))
    assert grade(folder, student="bob").graded == ["bob"]
    assert set(scores(folder, SLUG)) == {"bob"}


def test_progress_is_told_after_each_submission(grade, class_of, filled):
    told = []
    folder = class_of(ada=filled(**RIGHT), bob=b"{")
    grade(folder, progress=lambda *what: told.append(what))
    assert told == [("", 0, 2), ("ada", 1, 2), ("bob", 2, 2)]


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

    def status():
        return tuple(json.loads(capsys.readouterr().out)["chapters"][SLUG]["ada"].values())

    assert command("status", *where) == 1
    assert status() == ("waiting", None)
    command("grade", *where)
    capsys.readouterr()
    assert command("status", *where) == 0
    assert status() == ("graded", None)
    assert command("report", *where) == 0
    assert json.loads(capsys.readouterr().out)["chapters"][0]["rows"][0]["points"] == 0.0
    assert command("explain", "--student", "ada", *where[:2]) == 0
    assert "0/1  90-double-by-hand: fail" in capsys.readouterr().out
    class_of(ada=filled(**RIGHT))
    assert command("status", *where) == 1
    assert status() == ("changed since", "the submission")
    assert engine.started == 1


def test_explain_needs_a_student(command, class_of, capsys):
    assert command("explain", "--class-dir", class_of(ada=b"{}").root) == 2
    assert "--student" in capsys.readouterr().err


def test_the_grader_itself_never_imports_torch():
    """The driver holds the gradebook and the hidden tests; the worker holds torch."""
    code = "import sys, autograde.grade, autograde.sample_class; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# Why points are missing


def test_every_row_below_full_marks_says_why(grade, class_of, filled, chapter):
    right = {"double": RIGHT["double"], "row_means": RIGHT["row_means"]}
    folder = class_of(
        ada=filled(**right, why="Other axes."), bob=filled(**WRONG), eve=filled(), zoe=b"{"
    )
    grade(folder)
    with gradebook(folder) as book:
        mark = book.find_grade("90-why", SLUG, SLUG, "ada")
        mark.manual_score, mark.needs_manual_grade = 2.0, False
        book.db.commit()
    lines = str(table(folder, chapter)).splitlines()
    told = lines[next(i for i, line in enumerate(lines) if line.startswith("why points")) + 1 :]
    assert told == ["bob: double: expected 6, got 9 (and 1 more)", "eve: nothing attempted"]
    rows = {row["student"]: row for row in table(folder, chapter).as_json()["rows"]}
    assert rows["ada"]["reason"] is None
    assert rows["bob"]["why"] == {
        "90-double": "expected 6, got 9",
        "90-row-means": "this is not written yet",
        "90-why": "no answer",
    }


def test_what_was_not_graded_has_no_points_in_json(grade, class_of, chapter):
    folder = class_of(zoe=b"{")
    grade(folder)
    (row,) = table(folder, chapter).as_json()["rows"]
    assert (row["points"], row["graded"]) == (None, False)
    assert row["reason"].startswith("not graded: ")


def test_a_reason_fits_on_a_line_and_cannot_rewrite_the_terminal(grade, class_of, filled, chapter):
    folder = class_of(bob=filled(**WRONG))
    grade(folder)
    record = folder.read_record("bob", SLUG)
    record["tests"][0]["message"] = "\x1b[2J" + "long " * 60 + "\nsecond line"
    folder.write_record(record)
    (line,) = [li for li in str(table(folder, chapter)).splitlines() if li.startswith("bob: ")]
    assert len(line) <= 100
    assert "\x1b" not in line
    assert line.endswith("... (and 1 more)")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("out of memory", "asked for more memory"),
        ("timeout", "ran over its time"),
        ("killed", "ended before it was done"),
    ],
)
def test_a_state_without_a_message_is_said_in_words(
    command, class_of, filled, chapter, engine, capsys, state, said
):
    engine._verdict = lambda self, test, exercise, answer: Verdict(test.id, exercise, 1.0, state)
    folder = class_of(bob=filled(**WRONG))
    assert command("grade", "--class-dir", folder.root) == 0
    assert "bob: double: the answer" in capsys.readouterr().out
    assert said in table(folder, chapter).rows[0].why["90-double"]
    command("explain", "--student", "bob", "--class-dir", folder.root)
    told = capsys.readouterr().out
    assert f"90-double-by-hand: {state}" in told
    assert said in told


def test_points_taken_by_a_person_are_said_to_be(grade, class_of, filled, chapter):
    folder = class_of(ada=filled(**RIGHT))
    grade(folder)
    with gradebook(folder) as book:
        book.find_grade("90-double-general", SLUG, SLUG, "ada").manual_score = 0.5
        book.db.commit()
    (row,) = table(folder, chapter).rows
    assert row.why["90-double"] == "points taken by a person"


def test_status_says_what_changed_and_what_went_wrong(command, class_of, filled, capsys):
    folder = class_of(ada=filled(**RIGHT), zoe=b"{")
    where = ("--class-dir", folder.root)
    command("grade", *where)
    record = folder.read_record("ada", SLUG)
    folder.write_record({**record, "digest": "other" + record["digest"]})
    capsys.readouterr()
    assert command("status", *where) == 1
    ada, zoe = capsys.readouterr().out.splitlines()
    assert ada.endswith("changed since: the chapter or the grader")
    assert "could not be graded: 90-example.ipynb is not a notebook" in zoe


# A setup that does not run here


def test_a_setup_that_fails_is_no_zero(class_of, filled, course, engine, chapter, monkeypatch):
    def run(self, chapter, answers, **_):
        why = "the chapter's own setup cell stopped with ImportError: no such name"
        return {"90-double-by-hand": Verdict("", "90-double", 1.0, "error", why, SETUP)}

    monkeypatch.setattr(engine, "run", run, raising=False)
    folder = class_of(ada=filled(**RIGHT))
    outcome = grade_chapter(folder, SLUG, course=course, engine=engine)
    assert outcome.graded == []
    assert "setup cell stopped with ImportError" in outcome.problems["ada"]
    assert scores(folder, SLUG) == {}


# Called wrongly


@pytest.mark.parametrize("name", ["grade", "status", "feedback", "report", "explain", "export"])
def test_a_mistyped_student_is_not_there(command, class_of, filled, capsys, name):
    folder = class_of(ada=filled(), bob=filled())
    assert command(name, "--student", "nobody", "--class-dir", folder.root) == 2
    said = capsys.readouterr().err
    assert "there is no submission from 'nobody'; students: ada, bob" in said


def test_a_chapter_may_be_named_by_its_bare_number(command, class_of, filled, course, capsys):
    folder = class_of(ada=filled())
    assert command("grade", "090", "--class-dir", folder.root) == 0
    assert command("grade", "91", "--class-dir", folder.root) == 2
    assert "there is no chapter '91'; written chapters: 90-example" in capsys.readouterr().err


def test_a_broken_source_is_one_clear_line(command, class_of, filled, capsys, monkeypatch):
    def broken(*_):
        raise SourceError("90-example.md, cell 3: references.bib cannot be read")

    monkeypatch.setattr("autograde.record.instructor_notebook", broken)
    folder = class_of(ada=filled())
    assert command("grade", "--class-dir", folder.root) == 1
    said = capsys.readouterr().err
    assert said == "autograde: 90-example.md, cell 3: references.bib cannot be read\n"
