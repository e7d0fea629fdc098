"""A grading worksheet of Moodle, with the columns of mod/assign/gradingtable.php."""

import csv
import io

import pytest

from autograde.grade import grade_chapter

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x"}
HEAD = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\n"
)
WHEN = '"Monday, 12 October 2026, 6:00 PM",-,'
ROWS = [
    f'"Participant 11","Jane Doe",j1@x.edu,Submitted,,8.00,Yes,{WHEN}\n',
    f'"Participant 12","Jane Doe",j2@x.edu,Submitted,4.00,8.00,Yes,{WHEN}"good, so far"\n',
    f'"Participant 13","Zoë Ł",zoe@x.edu,Submitted,,8.00,No,{WHEN}\n',
    f'"Participant 14",Bob,bob@x.edu,Submitted,,2.00,Yes,{WHEN}\n',
    '"Participant 15","Al Late",al@x.edu,"No submission",,8.00,Yes,-,-,\n',
]


@pytest.fixture
def moodle(command, class_of, filled, course, engine, tmp_path, capsys):
    """Fill a worksheet in, for students as a download of Moodle names them."""
    students = {"Jane Doe_11": filled(), "Jane Doe_12": filled(**RIGHT)}
    made = class_of(**students, **{"Zoë Ł": filled(**RIGHT), "bob": filled(**RIGHT), "eve": b"{"})
    grade_chapter(made, SLUG, course=course, engine=engine)

    def fill(text):
        theirs = tmp_path / "worksheet.csv"
        theirs.write_text(text, encoding="utf-8-sig", newline="")
        where = ("--class-dir", made.root, "--to", tmp_path / "to")
        status = command("export", "90", *where, "--moodle", theirs)
        said = capsys.readouterr()
        path = tmp_path / "to" / "90-example-moodle.csv"
        after = read(path.read_text(encoding="utf-8-sig")) if path.exists() else None
        return after, status, said.out + said.err

    return fill


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_grades_go_to_the_right_rows_and_the_rest_stays(moodle):
    before = read(HEAD + "".join(ROWS))
    after, status, said = moodle(HEAD + "".join(ROWS))
    assert [row["Grade"] for row in after] == ["0", "3", "3", "3", ""]
    for old, new in zip(before, after, strict=True):
        assert old | {"Grade": ""} == new | {"Grade": ""}
    assert status == 1
    assert "bob has 3 of at most 2.00: Moodle passes that over" in said
    assert "Zoë Ł: the grade is locked in Moodle" in said
    assert "not in the file: eve: no row is this one" in said
    assert "in the file, but handed in nothing: Al Late" in said


def test_two_of_one_name_are_not_guessed_at_without_their_number(moodle):
    renumbered = [row.replace("Participant 1", "Participant 9") for row in ROWS]
    after, _, said = moodle(HEAD + "".join(renumbered))
    assert [row["Grade"] for row in after] == ["", "4.00", "3", "3", ""]
    assert "not in the file: Jane Doe_11: no row is this one" in said


@pytest.mark.parametrize("lost", ["Identifier", "Grade", "Last modified (grade)"])
def test_a_worksheet_without_a_column_that_moodle_needs_is_refused(moodle, lost):
    after, status, said = moodle(HEAD.replace(f"{lost},", "Something,", 1) + ROWS[0])
    assert (after, status) == (None, 2)
    assert f"has no column {lost}, so it is no grading worksheet" in said


def test_an_assignment_with_a_scale_takes_no_numbers(moodle):
    after, status, said = moodle(HEAD.replace("Maximum Grade", "Scale") + ROWS[0])
    assert (after, status) == (None, 2)
    assert "the assignment has a scale" in said
