"""Regrading: it shows who changes before it writes, takes nothing away unasked, and no teacher's.

The chapter is a copy whose tests may change; the engine pretends, and `severe` fails more answers.
"""

import json
import shutil

import pytest

from autograde import record as recording
from autograde.chapters import Course
from autograde.grade import grade_chapter
from autograde.record import gradebook, scores
from autograde.regrade import WouldLower, regrade_chapter, write_regrade
from autograde.run import Verdict

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x", "row_means": "def row_means(x):\n    pass"}
WRONG = {"double": "def double(x):\n    return wrong", "row_means": RIGHT["row_means"]}


@pytest.fixture
def changing(course, tmp_path):
    """A copy of the course whose source a test may change."""
    copy = Course(tmp_path / "course")
    shutil.copytree(course.root, copy.root)
    return copy


def edit(course, old, new):
    path = course.source(SLUG)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def severe(engine):
    """An engine that fails the second test of `double`, whatever it is given; and passes wrongs."""

    class Severe(engine):
        def _verdict(self, test, exercise, answer):
            points = float(test.header["points"])
            if test.id == "90-double-general":
                return Verdict(test.id, exercise, points, "fail", "expected 82, got 8")
            return Verdict(test.id, exercise, points, "pass")

    return Severe


@pytest.fixture
def graded(class_of, filled, engine, changing, fresh_release, monkeypatch):
    """ada has all points, bob's `double` is wrong; then a word in the source changes."""
    # Changing the chapter costs no run of nbgrader's generate_assignment.
    monkeypatch.setattr(recording, "student_notebook", lambda chapter: fresh_release)
    folder = class_of(ada=filled(**RIGHT, why="Axes."), bob=filled(**WRONG))
    grade_chapter(folder, SLUG, course=changing, engine=engine)
    edit(changing, "# An example", "# A better example")
    return folder


@pytest.fixture
def regrade(graded, severe, changing):
    def run(**options):
        options = {"course": changing, "engine": severe, **options}
        return regrade_chapter(graded, SLUG, **options)

    return run


def told(result):
    return {(one.student, one.exercise): (one.old, one.new) for one in result.changes}


def auto(folder, student):
    return {test: score.auto for test, score in scores(folder, SLUG)[student].items()}


# Showing


def test_it_shows_who_changes_by_how_much_and_because_of_which_tests(regrade):
    result = regrade()
    assert told(result) == {("ada", "90-double"): (3.0, 1.0), ("bob", "90-double"): (0.0, 1.0)}
    ada, bob = result.changes
    assert ada.tests == {"90-double-general": ("pass", "fail")}
    assert bob.tests == {"90-double-by-hand": ("fail", "pass")}


def test_showing_writes_nothing(regrade, graded):
    before = {path: path.read_bytes() for path in graded.root.rglob("*") if path.is_file()}
    regrade()
    assert {path: path.read_bytes() for path in graded.root.rglob("*") if path.is_file()} == before


def test_one_exercise_runs_alone(regrade, severe, monkeypatch):
    asked = []
    real = severe.run

    def run(self, chapter, answers, **options):
        asked.append(options["exercises"])
        return real(self, chapter, answers, **options)

    monkeypatch.setattr(severe, "run", run)
    assert told(regrade(exercises=["90-row-means"], student="ada")) == {}
    assert asked == [["90-row-means"]]


def test_what_nothing_changes_for_is_not_listed(regrade, engine):
    assert regrade(engine=engine).changes == []


# Writing


def test_an_exercise_keeps_all_its_old_verdicts_rather_than_lose_points(regrade, graded):
    write_regrade(graded, regrade(), allow_lower=False)
    assert auto(graded, "ada")["90-double-general"] == 2.0
    assert auto(graded, "bob")["90-double-by-hand"] == 1.0
    record = graded.read_record("ada", SLUG)
    assert record["kept"] == ["90-double"]
    assert {test["state"] for test in record["tests"]} == {"pass"}


def test_allow_lower_takes_the_new_marks(regrade, graded):
    write_regrade(graded, regrade(), allow_lower=True)
    assert auto(graded, "ada")["90-double-general"] == 0.0
    assert graded.read_record("ada", SLUG)["kept"] == []
    assert regrade().changes == []


def test_a_teachers_score_stands_and_counts_on_both_sides(regrade, graded):
    with gradebook(graded) as book:
        mark = book.find_grade("90-double-general", SLUG, SLUG, "ada")
        mark.manual_score, mark.needs_manual_grade = 1.5, False
        book.db.commit()
    result = regrade(student="ada")
    assert told(result) == {("ada", "90-double"): (2.5, 2.5)}
    write_regrade(graded, result, allow_lower=True)
    score = scores(graded, SLUG)["ada"]["90-double-general"]
    assert (score.points, score.auto, score.needs_manual_grade) == (1.5, 0.0, False)


def test_a_regraded_class_is_up_to_date_and_grading_it_does_nothing(
    regrade, graded, changing, engine
):
    before = grade_chapter(graded, SLUG, course=changing, engine=engine)
    assert before.outdated == ["ada", "bob"]
    write_regrade(graded, regrade(), allow_lower=False)
    assert grade_chapter(graded, SLUG, course=changing, engine=engine).unchanged == ["ada", "bob"]


def test_after_one_exercise_the_others_are_still_to_be_regraded(regrade, graded, changing, engine):
    write_regrade(graded, regrade(exercises=["90-double"]), allow_lower=False)
    assert auto(graded, "bob")["90-row-means-by-hand"] == 3.0
    after = grade_chapter(graded, SLUG, course=changing, engine=engine)
    assert after.outdated == ["ada", "bob"]


def test_marks_of_tests_that_are_gone_cannot_be_kept_and_nothing_is_written(
    regrade, graded, changing
):
    edit(changing, "points: 2", "points: 1")
    before = graded.gradebook.read_bytes()
    result = regrade(student="ada")
    with pytest.raises(WouldLower, match=r"90-double are others.*cannot keep 3 points"):
        write_regrade(graded, result, allow_lower=False)
    assert graded.gradebook.read_bytes() == before
    write_regrade(graded, result, allow_lower=True)
    assert sum(score.points for score in scores(graded, SLUG)["ada"].values()) == 4.0


def test_one_exercise_alone_is_refused_where_others_have_new_tests(regrade, graded, changing):
    edit(changing, "points: 3", "points: 4")
    with pytest.raises(WouldLower, match="90-row-means has other tests too"):
        write_regrade(graded, regrade(exercises=["90-double"]), allow_lower=True)


def test_new_or_ungraded_work_is_left_to_grade(regrade, graded, class_of, filled):
    class_of(bob=filled(**RIGHT), eve=filled(**RIGHT))
    problems = regrade().problems
    assert "handed in anew since" in problems["bob"]
    assert "not graded yet" in problems["eve"]
    write_regrade(graded, regrade(), allow_lower=False)
    assert auto(graded, "bob")["90-double-by-hand"] == 0.0


# The command


@pytest.fixture
def regrade_command(graded, severe, changing, command, monkeypatch):
    for module in ("choose", "regrade"):
        monkeypatch.setattr(f"autograde.{module}.Course", lambda: changing)
    defaults = {**regrade_chapter.__kwdefaults__, "engine": severe}
    monkeypatch.setattr(regrade_chapter, "__kwdefaults__", defaults)
    return lambda *words: command("regrade", *words, "--class-dir", graded.root)


def test_the_command_shows_a_table_and_writes_only_when_told_to(regrade_command, graded, capsys):
    assert regrade_command("90-double") == 0
    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines()]
    assert ["ada", "90-double", "3", "1", "-2", "keeps", "the", "old"] in lines
    assert ["bob", "90-double", "0", "1", "+1"] in lines
    assert ["90-double-general:", "pass", "->", "fail"] in lines
    assert lines[-1] == ["nothing", "was", "written;", "--write", "does", "it"]
    assert auto(graded, "bob")["90-double-by-hand"] == 0.0
    assert regrade_command("90", "--write") == 0
    assert auto(graded, "bob")["90-double-by-hand"] == 1.0
    assert auto(graded, "ada")["90-double-general"] == 2.0


def test_its_json_says_the_same(regrade_command, capsys):
    assert regrade_command("90", "--student", "ada", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["changes"] == [
        {
            "student": "ada",
            "exercise": "90-double",
            "old": 3.0,
            "new": 1.0,
            "difference": -2.0,
            "kept": True,
            "tests": {"90-double-general": ["pass", "fail"]},
        }
    ]
    assert (said["judged"], said["written"]) == (1, False)


def test_explain_tells_what_was_kept(regrade_command, command, graded, capsys):
    regrade_command("90", "--write")
    capsys.readouterr()
    assert command("explain", "90", "--student", "ada", "--class-dir", graded.root) == 0
    assert "kept: 90-double: the present tests give fewer points" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("90-triple", "there is no exercise '90-triple'; those of 90-example: 90-double"),
        ("91-softmax", "there is no chapter '91'"),
        ("example", "there is no chapter 'example'"),
    ],
)
def test_what_is_not_there_is_a_wrong_call(regrade_command, capsys, what, said):
    assert regrade_command(what) == 2
    assert said in capsys.readouterr().err
