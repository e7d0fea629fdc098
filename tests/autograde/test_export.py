"""CSV that a spreadsheet reads right and never runs."""

import csv
import io
import json

import pytest

from autograde.export import QUESTIONS, TOTALS, as_csv, question_rows, total_rows
from autograde.grade import grade_chapter
from autograde.record import gradebook

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x", "why": "Other axes."}


@pytest.fixture
def folder(class_of, filled, course, engine):
    made = class_of(**{"=HYPERLINK(1)": filled(**RIGHT), "ada": filled(), "broken": b"{"})
    grade_chapter(made, SLUG, course=course, engine=engine)
    return made


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_one_line_for_each_student_and_question(folder, chapter):
    rows = question_rows(chapter, folder)
    assert [(row["student"], row["test"]) for row in rows[:4]] == [
        ("=HYPERLINK(1)", "90-double-by-hand"),
        ("=HYPERLINK(1)", "90-double-general"),
        ("=HYPERLINK(1)", "90-row-means-by-hand"),
        ("=HYPERLINK(1)", "90-why"),
    ]
    assert rows[0]["question"] == "90-double"
    assert [row["points"] for row in rows[:4]] == [1.0, 2.0, 0.0, 0.0]
    assert rows[3]["to_be_read"] == 1


def test_totals_are_the_sums_of_the_questions(folder, chapter):
    questions = question_rows(chapter, folder)
    for total in total_rows(chapter, folder):
        mine = [row["points"] for row in questions if row["student"] == total["student"]]
        assert total["points"] == (sum(mine) if mine else None)


def test_a_submission_that_could_not_be_graded_has_no_points_and_a_reason(folder, chapter):
    row = next(row for row in total_rows(chapter, folder) if row["student"] == "broken")
    assert row["points"] is None
    assert "not valid JSON" in row["not_graded_because"]


def test_a_score_given_by_a_person_is_what_is_exported(folder, chapter):
    with gradebook(folder) as book:
        book.find_grade("90-why", SLUG, SLUG, "=HYPERLINK(1)").manual_score = 1.5
        book.db.commit()
    assert total_rows(chapter, folder)[0]["points"] == 4.5


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_what_a_spreadsheet_would_run_is_made_text(start):
    row = dict.fromkeys(TOTALS, "") | {"student": f"{start}cmd|' /C calc'!A0", "points": 2.5}
    (read_back,) = read(as_csv(TOTALS, [row]))
    assert read_back["student"] == f"'{start}cmd|' /C calc'!A0"
    assert read_back["points"] == "2.5"


def test_quotes_commas_and_line_breaks_survive():
    name = 'Łuk, "the\nsecond"'
    rows = [dict.fromkeys(QUESTIONS, 0) | {"student": name}]
    assert read(as_csv(QUESTIONS, rows))[0]["student"] == name


def test_the_command_writes_both_files_and_says_so(command, folder, tmp_path, capsys):
    where = ("--class-dir", folder.root, "--to", tmp_path / "out")
    assert command("export", *where) == 1  # one is not graded
    assert "questions.csv" in capsys.readouterr().out
    raw = (tmp_path / "out" / "totals.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    rows = read(raw.decode("utf-8-sig"))
    assert [row["student"] for row in rows] == ["'=HYPERLINK(1)", "ada", "broken"]


def test_json_is_the_same_and_writes_nothing(command, folder, capsys):
    assert command("export", "--class-dir", folder.root, "--student", "ada", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["student"] for row in said["totals"]] == ["ada"]
    assert {row["student"] for row in said["questions"]} == {"ada"}
    assert not (folder.root / "export").exists()


def test_one_chapter_or_student_has_files_of_its_own(command, folder):
    to = folder.root / "export"
    command("export", "--class-dir", folder.root)
    before = {path.name: path.read_bytes() for path in to.iterdir()}
    command("export", "90", "--class-dir", folder.root)
    command("export", "--student", "ada", "--class-dir", folder.root)
    assert {name: (to / name).read_bytes() for name in before} == before
    assert {path.name for path in to.iterdir()} - set(before) == {
        "90-example-questions.csv",
        "90-example-totals.csv",
        "ada-questions.csv",
        "ada-totals.csv",
    }


def test_a_file_without_a_line_is_not_written(command, class_of, capsys):
    folder = class_of(ada=b"{")  # handed in, not graded: totals have a line, questions none
    (folder.root / "export").mkdir()
    (folder.root / "export" / "questions.csv").write_text("of yesterday")
    assert command("export", "--class-dir", folder.root) == 1
    assert "no lines, so not written" in capsys.readouterr().out
    assert (folder.root / "export" / "questions.csv").read_text() == "of yesterday"
    assert (folder.root / "export" / "totals.csv").exists()
