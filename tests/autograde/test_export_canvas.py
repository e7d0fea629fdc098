"""A gradebook of Canvas, in the shapes that lib/gradebook_exporter.rb of canvas-lms writes."""

import csv
import io
import json

import pytest

from autograde.grade import grade_chapter

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x"}
HEAD = "Student,ID,SIS User ID,SIS Login ID,Section,Notes,Other (7),An example (55),Final Score\n"
POSTING = ",,,,,,,Manual Posting,\n"
POSSIBLE = "    Points Possible,,,,,,10.00,8.00,(read only)\n"
PEOPLE = [
    '"Lovelace, Ada",101,u1,ada@school.edu,Sec 1,"a, ""b""",9.50,,88.1\n',
    '"Doe, Jane",102,u2,jd1@school.edu,Sec 1,,EX,1.00,70\n',
    '"Doe, Jane",103,u3,jd2@school.edu,Sec 2,,,N/A,\n',
    '"=""=cmd|x""",104,00123,z@school.edu,Sec 2,+1,N/A,,\n',
    '"Student, Test",105,,bbb15e,Sec 1,,,,\n',
]


@pytest.fixture
def folder(class_of, filled, course, engine):
    students = {
        "ada": filled(**RIGHT, why="Axes."),
        "doejane": filled(),
        "doejane_103": filled(),
        "00123": b"{",
    }
    made = class_of(**students, stranger=filled(**RIGHT))
    grade_chapter(made, SLUG, course=course, engine=engine)
    known = {"archives": {}, "submissions": {}, "students": {"doejane": "102"}}
    (made.root / "records" / "incoming.json").write_text(json.dumps(known))
    return made


@pytest.fixture
def canvas(command, folder, tmp_path, capsys):
    """Fill a file in: its rows before and after, the exit status and what was said."""

    def fill(text, *options):
        theirs = tmp_path / "theirs.csv"
        theirs.write_text(text, encoding="utf-8", newline="")
        where = ("--class-dir", folder.root, "--to", tmp_path / "to")
        status = command("export", "90", *where, "--canvas", theirs, *options)
        made = tmp_path / "to" / "90-example-canvas.csv"
        after = read(made.read_text(encoding="utf-8")) if made.exists() else None
        said = capsys.readouterr()
        return read(text), after, status, said.out + said.err

    return fill


def read(text):
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def test_only_the_cells_of_those_who_are_found_change(canvas):
    before, after, status, said = canvas(HEAD + POSTING + POSSIBLE + "".join(PEOPLE))
    column = before[0].index("An example (55)")
    changed = {
        (at, place): new
        for at, (old_row, new_row) in enumerate(zip(before, after, strict=True))
        for place, (old, new) in enumerate(zip(old_row, new_row, strict=True))
        if old != new
    }
    assert changed == {(3, column): "3", (4, column): "0"}
    assert status == 1
    assert "    2 grades" in said
    assert "left as it was: doejane_103: the file says N/A" in said
    assert "left as it was: 00123: " in said
    assert "not in the file: stranger: no row is this one" in said
    assert "in the file, but handed in nothing: Student, Test" in said
    assert "1 of these with answers that a person has yet to read" in said


def test_points_after_lateness_are_what_canvas_gets(canvas, folder):
    record = folder.read_record("ada", SLUG)
    folder.write_record({**record, "submitted": "2026-10-10T12:00:00+00:00"})
    (folder.root / "course.toml").write_text(
        "[late]\ncost_per_day = 0.5\n[deadlines]\n90 = 2026-10-09\n"
    )
    _, after, _, _ = canvas(HEAD + POSSIBLE + PEOPLE[0])
    assert after[2][7] == "1.5"


@pytest.mark.parametrize("name", ["55", "An example", "An example (55)"])
def test_the_column_is_found_by_name_or_number(canvas, name):
    _, after, _, _ = canvas(HEAD + POSSIBLE + PEOPLE[0], "--assignment", name)
    assert after[2][6:8] == ["9.50", "3"]


def test_another_column_can_be_named(canvas):
    _, after, _, said = canvas(HEAD + POSSIBLE + PEOPLE[0], "--assignment", "7")
    assert after[2][6:8] == ["3", ""]
    assert "Other (7): of 10.00 points there, of 8 here; nothing is scaled" in said


def test_last_and_first_name_may_have_columns_of_their_own(canvas):
    head = "LastName,FirstName,ID,SIS Login ID,Section,An example (55)\n"
    possible = "    Points Possible,,,,,8.00\n"
    _, after, _, _ = canvas(head + possible + "Lovelace,Ada,101,ADA@school.edu,Sec 1,\n")
    assert after[2] == ["Lovelace", "Ada", "101", "ADA@school.edu", "Sec 1", "3"]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("Name,Grade\nAda,3\n", (), "is no gradebook of Canvas"),
        (HEAD + PEOPLE[0], (), "has no line Points Possible"),
        (HEAD + POSSIBLE, ("--assignment", "Essay"), "has no column Essay that"),
        (HEAD.replace("Other", "An example") + POSSIBLE, (), "has 2 columns for 90-example"),
        (HEAD.replace("SIS User ID", "ID") + POSSIBLE, (), "has 2 columns 'ID'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_before_anything_is_written(
    canvas, folder, tmp_path, text, options, words
):
    _, after, status, said = canvas(text, *options)
    assert (status, after) == (2, None)
    assert words in said
    assert not (tmp_path / "to").exists()


def test_the_file_itself_is_never_written_over(command, folder, capsys):
    theirs = folder.root / "export" / "90-example-canvas.csv"
    theirs.parent.mkdir()
    theirs.write_text(HEAD + POSSIBLE + PEOPLE[0])
    assert command("export", "90", "--class-dir", folder.root, "--canvas", theirs) == 2
    assert "would be written over" in capsys.readouterr().err
    assert theirs.read_text() == HEAD + POSSIBLE + PEOPLE[0]
