"""CSV of our own, which a spreadsheet reads right and never runs, and points due by the rules."""

import csv
import io
import json

import pytest

from autograde.course_rules import Rules
from autograde.export import QUESTIONS, TOTALS, as_csv, question_rows, total_rows
from autograde.export_points import lines_of
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
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


@pytest.fixture
def lines(folder, chapter):
    return lambda: lines_of(folder, [chapter], Rules())


def test_one_line_for_each_student_and_question(lines):
    rows = question_rows(lines())
    assert [(row["student"], row["test"]) for row in rows[:4]] == [
        ("=HYPERLINK(1)", "90-double-by-hand"),
        ("=HYPERLINK(1)", "90-double-general"),
        ("=HYPERLINK(1)", "90-row-means-by-hand"),
        ("=HYPERLINK(1)", "90-why"),
    ]
    assert rows[0]["question"] == "90-double"
    assert [row["points"] for row in rows[:4]] == [1.0, 2.0, 0.0, 0.0]
    assert rows[3]["to_be_read"] == 1


def test_totals_are_the_sums_of_the_questions(lines):
    questions = question_rows(lines())
    for total in total_rows(lines()):
        mine = [row["points"] for row in questions if row["student"] == total["student"]]
        assert total["points"] == (sum(mine) if mine else None)


def test_a_submission_that_could_not_be_graded_has_no_points_and_a_reason(lines):
    row = next(row for row in total_rows(lines()) if row["student"] == "broken")
    assert row["points"] is None
    assert "not valid JSON" in row["not_graded_because"]


def test_a_score_given_by_a_person_is_what_is_exported(folder, lines):
    with gradebook(folder) as book:
        book.find_grade("90-why", SLUG, SLUG, "=HYPERLINK(1)").manual_score = 1.5
        book.db.commit()
    assert total_rows(lines())[0]["points"] == 4.5


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
        "90-example-wide.csv",
        "ada-questions.csv",
        "ada-totals.csv",
        "ada-wide.csv",
    }


def test_a_file_without_a_line_is_not_written(command, class_of, capsys):
    folder = class_of(ada=b"{")  # handed in, not graded: totals have a line, questions none
    (folder.root / "export").mkdir()
    (folder.root / "export" / "questions.csv").write_text("of yesterday")
    assert command("export", "--class-dir", folder.root) == 1
    assert "no lines, so not written" in capsys.readouterr().out
    assert (folder.root / "export" / "questions.csv").read_text() == "of yesterday"
    assert (folder.root / "export" / "totals.csv").exists()


# course.toml at export


@pytest.fixture
def late(folder):
    """The class with rules by which =HYPERLINK(1), handed in on the 12th, is three days late."""
    record = folder.read_record("=HYPERLINK(1)", SLUG)
    folder.write_record({**record, "submitted": "2026-10-12T16:00:00+00:00"})
    (folder.root / "course.toml").write_text(
        "[late]\ncost_per_day = 0.1\nslip_days = 1\n[deadlines]\n90 = 2026-10-09T18:00:00\n"
    )
    return folder


def test_lateness_is_worked_out_at_export_and_the_gradebook_keeps_its_scores(
    command, late, tmp_path
):
    before = late.gradebook.read_bytes()
    command("export", "--class-dir", late.root, "--to", tmp_path)
    row = read((tmp_path / "totals.csv").read_text(encoding="utf-8-sig"))[0]
    assert (row["points"], row["days_late"], row["slip_days"]) == ("3.0", "3", "1")
    assert (row["fraction_lost"], row["points_due"]) == ("0.2", "2.4")
    assert row["why_due"] == "3 days late, 1 slip day spent: 0.2 of the points lost"
    assert late.gradebook.read_bytes() == before


def test_points_of_a_tier_that_does_not_count_are_not_due(command, folder, tmp_path):
    (folder.root / "course.toml").write_text('tiers = ["more"]')
    command("export", "--class-dir", folder.root, "--to", tmp_path)
    row = read((tmp_path / "totals.csv").read_text(encoding="utf-8-sig"))[0]
    assert (row["points"], row["out_of"]) == ("3.0", "8.0")
    assert (row["points_due"], row["points_due_out_of"]) == ("0.0", "5.0")


def test_the_wide_file_has_a_column_for_each_exercise(command, late, tmp_path):
    command("export", "--class-dir", late.root, "--to", tmp_path)
    text = (tmp_path / "wide.csv").read_text(encoding="utf-8-sig")
    assert csv.Sniffer().sniff(text).delimiter == ","
    rows = read(text)
    assert rows[0] == {
        "student": "'=HYPERLINK(1)",
        "90-double": "3.0",
        "90-row-means": "0.0",
        "90-why": "0.0",
        "90-example points": "3.0",
        "90-example days late": "3",
        "90-example points due": "2.4",
    }
    assert set(rows[2].values()) == {"broken", ""}


def test_rules_that_cannot_be_followed_stop_the_export(command, folder, capsys):
    (folder.root / "course.toml").write_text("[late]\nslip_day = 3")
    assert command("export", "--class-dir", folder.root) == 2
    assert "[late] slip_day is no key" in capsys.readouterr().err
    assert not (folder.root / "export").exists()


def test_an_extension_for_nobody_is_told(command, late, capsys):
    with (late.root / "course.toml").open("a") as file:
        file.write("[extensions.adda]\n90 = 3\n")
    command("export", "--class-dir", late.root)
    assert "extensions for 'adda', who handed in nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--json", "--gradescope"], "--json writes no files"),
        (["--moodle", "x.csv"], "name its chapter"),
        (["--student", "ada", "--canvas", "x.csv"], "take --student away"),
        (["90", "--assignment", "HW 1"], "--assignment goes with --canvas"),
    ],
)
def test_options_that_do_not_go_together(command, folder, capsys, options, words):
    assert command("export", "--class-dir", folder.root, *options) == 2
    assert words in capsys.readouterr().err
