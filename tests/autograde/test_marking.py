"""Marking by sheets: nobody is named, nothing is lost, nothing that does not fit gets in."""

import csv
import io
import itertools
import os
import sqlite3
from functools import partial

import pytest

from autograde.comment_bank import NAME as BANK
from autograde.export_sheet import BadSheet
from autograde.grade import grade_chapter
from autograde.gradebook_cells import GradebookError
from autograde.marking import export_sheet
from autograde.marking_import import import_sheet
from autograde.marking_sheet import _distinct, answers, drawn, rubric
from autograde.record import gradebook, scores
from autograde.second_marks import agreements
from autograde.source import load

SLUG, CELL = "90-example", "90-why"
TEXTS = {
    "ada": "They sum over different axes.",
    "bob": '=HYPERLINK("http://example.org")',
    "cleo": "<script>alert(1)</script>\n\nTwo axes, two means: $\\mu$; 50 %.",
    "dan": "I do not know.",
}


@pytest.fixture
def folder(class_of, filled, course, engine):
    """Four who answered, and one who left the answer blank."""
    sent = {student: filled(why=text) for student, text in TEXTS.items()}
    folder = class_of(**sent, eve=filled())
    grade_chapter(folder, SLUG, course=course, engine=engine)
    return folder


@pytest.fixture
def fill(folder, chapter, tmp_path):
    """Export, put points and comments in by student, change cells, and give the sheet's path."""

    def run(points=None, comments=None, marker="", change=None, **options):
        path = export_sheet(folder, chapter, marker, **options)[0][0]
        table = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))
        whose = {answer.id: answer.student for answer in answers(folder, chapter)}
        for row in table:
            student = whose[row["answer"]]
            row["points"] = (points or {}).get(student, row["points"])
            row["comment"] = (comments or {}).get(student, row["comment"])
        table = change(table) if change else table
        text = io.StringIO()
        writer = csv.DictWriter(text, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
        filled = tmp_path / f"filled{marker}.csv"
        filled.write_text(text.getvalue(), encoding="utf-8", newline="")
        return filled

    return run


@pytest.fixture
def take(folder, chapter):
    return partial(import_sheet, folder, chapter)


def in_book(folder):
    """Student -> points, comment, still to be read."""
    lines = {student: found[CELL] for student, found in scores(folder, SLUG).items()}
    return {s: (one.manual, one.comment, one.needs_manual_grade) for s, one in lines.items()}


# What a marker gets


def test_nobody_can_be_told_from_what_a_marker_gets(folder, chapter):
    (sheet, page), _ = export_sheet(folder, chapter)
    assert len({answer.id for answer in answers(folder, chapter)}) == 4
    for path in (sheet, page):
        text = path.read_text("utf-8-sig")
        for name in (*TEXTS, "eve", str(folder.root), "2026"):
            assert f"{name}" not in text.replace("readable", ""), f"{name} stands in {path.name}"
    ids = [row["answer"] for row in csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig")))]
    assert ids == sorted(ids)


def test_ids_stay_and_are_of_the_class_alone(folder, chapter):
    before = {one.student: one.id for one in answers(folder, chapter)}
    assert {one.student: one.id for one in answers(folder, chapter)} == before
    (folder.root / "secret.key").write_text("another")
    after = {one.student: one.id for one in answers(folder, chapter)}
    assert not set(before.values()) & set(after.values())


def test_ids_that_would_be_alike_get_longer():
    assert _distinct(["bbbbbbbcc", "bbbbbbbdd", "cccccccbb"]) == [
        "bbbbbbbc",
        "bbbbbbbd",
        "cccccccb",
    ]


def test_the_page_shows_texts_as_texts(folder, chapter):
    page = export_sheet(folder, chapter)[0][1].read_text()
    assert "<script" not in page
    assert "script&gt;alert(1)" in page
    assert "Why is the mean of a row not the mean of a column?" in page


def test_a_spreadsheet_runs_nothing_of_the_sheet(folder, chapter):
    text = export_sheet(folder, chapter)[0][0].read_text("utf-8-sig")
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert '\'=HYPERLINK("http://example.org")' in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


def test_the_rubric_of_the_course_has_three_points():
    from autograde.marking_sheet import question

    chapter = load("02-attention")
    points = rubric(question(chapter, chapter.written[0]))
    assert list(points) == ["what-it-does", "what-it-does-not-promise", "what-stays-as-it-was"]
    assert points["what-stays-as-it-was"].startswith("what stays as it was (at least two of: the ")


def test_a_sheet_with_new_marks_is_kept(folder, chapter, fill, take):
    path = folder.root / "marking" / f"{SLUG}.csv"
    for number in (1, 2):
        fill({"ada": "2"}, {"ada": "#a-key"}).replace(path)
        before = path.read_bytes()
        _, kept = export_sheet(folder, chapter)
        assert kept.name == f"{SLUG}-earlier-{number}.csv"
        assert kept.read_bytes() == before
    fill({"ada": "2"}).replace(path)
    take(path)
    assert export_sheet(folder, chapter)[1] is None
    assert ',"2",' in path.read_text("utf-8-sig")
    path.write_bytes(b"\xff")
    assert export_sheet(folder, chapter)[1].read_bytes() == b"\xff"


# Marks that come back


def test_marks_reach_gradebook_and_feedback(folder, fill, take, command):
    done = take(fill({"ada": "2", "bob": "0", "cleo": "1,5"}, {"cleo": "Which two?"}))
    assert (done["marks"], done["new"], done["to_be_marked"]) == (3, 3, 1)
    assert in_book(folder) == {
        "ada": (2, None, False),
        "bob": (0, None, False),
        "cleo": (1.5, "Which two?", False),
        "dan": (None, None, True),
        "eve": (None, None, False),
    }
    assert take(fill())["new"] == 0
    command("grade", "90", "--class-dir", folder.root)
    command("feedback", "90", "--class-dir", folder.root)
    page = folder.feedback("cleo", SLUG).read_text()
    assert "1.5 of 2 points" in page
    assert "<pre>Which two?</pre>" in page


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ("3", "no number from 0 to 2"),
        ("-1", "'-1'"),
        ("nan", "'nan'"),
        ("1e0", "'1e0'"),
        ("two", "'two'"),
        ("1/2", "'1/2'"),
    ],
)
def test_points_that_cannot_be_are_refused(folder, fill, take, points, words):
    with pytest.raises(BadSheet, match=words):
        take(fill({"ada": points, "bob": "1"}))
    assert in_book(folder)["bob"] == (None, None, True)  # all or nothing


def doubled(table):
    return [*table, table[0]]


def renamed(table):
    return [{**table[0], "answer": "bbbbbbb"}, *table[1:]]


def of_another_chapter(table):
    return [{**row, "exercise": "02-what-the-scale-does-not-do"} for row in table]


def texts_sorted_apart(table):
    return [{**row, "text": table[at - 1]["text"]} for at, row in enumerate(table)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (doubled, "this answer has 2 lines; keep one"),
        (renamed, "line 2, bbbbbbb: there is no such answer to 90-why"),
        (of_another_chapter, "no such answer to 02-what.* of this class and chapter"),
        (texts_sorted_apart, "were the columns sorted apart"),
    ],
)
def test_lines_that_do_not_fit_are_refused(folder, fill, take, change, words):
    before = in_book(folder)
    with pytest.raises(BadSheet, match=words):
        take(fill(dict.fromkeys(TEXTS, "1"), change=change))
    assert in_book(folder) == before


def test_all_that_is_wrong_is_said_at_once(fill, take):
    with pytest.raises(BadSheet) as said:
        take(fill({"ada": "9", "bob": "x", "cleo": "1"}, {"cleo": "#unknown"}))
    assert str(said.value).count("\n  line ") == 3


def test_a_sheet_of_earlier_work_is_refused(folder, fill, take, class_of, filled, course, engine):
    sheet = fill({"ada": "2"})
    class_of(ada=filled(why="The axes are others."))
    grade_chapter(folder, SLUG, course=course, engine=engine)
    with pytest.raises(BadSheet, match="the answer has changed since the sheet was written"):
        take(sheet)
    assert in_book(folder)["ada"] == (None, None, True)


def test_what_a_spreadsheet_does_to_a_file_does_no_harm(folder, fill, take):
    """Semicolons, other ends of lines, empty lines, a byte order mark."""
    sheet = fill({"ada": "1,5", "cleo": "2"})
    rows = list(csv.reader(io.StringIO(sheet.read_text(), newline="")))
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\r\n").writerows(
        [[cell.replace("\n", "\r\n") for cell in row] for row in [*rows, [""] * len(rows[0])]]
    )
    sheet.write_bytes(text.getvalue().encode("utf-8-sig"))
    assert take(sheet)["marks"] == 2
    assert in_book(folder)["ada"][0] == 1.5
    sheet.write_bytes("Zoë;2\n".encode("latin-1"))
    with pytest.raises(BadSheet, match="is not UTF-8; in Excel, save it as 'CSV UTF-8'"):
        take(sheet)
    sheet.write_text("answer,points\n")
    with pytest.raises(BadSheet, match=r"has no column exercise, .*fill in the sheet of --export"):
        take(sheet)


def in_formgrader(folder, student, points, comment=None):
    with gradebook(folder) as book:
        grade = book.find_grade(CELL, SLUG, SLUG, student)
        grade.manual_score, grade.needs_manual_grade = points, points is None
        book.find_comment(CELL, SLUG, SLUG, student).manual_comment = comment
        book.db.commit()


def test_other_marks_are_replaced_only_when_asked(folder, fill, take):
    sheet = fill({"ada": "2", "bob": "1"}, {"bob": "Better."})
    in_formgrader(folder, "ada", 1.0, "See #me.")
    in_formgrader(folder, "bob", None, "Later.")
    with pytest.raises(BadSheet) as said:
        take(sheet)
    assert "has 1 points and the comment 'See #me.', the sheet says 2 points" in str(said.value)
    assert "has no points and the comment 'Later.', the sheet says 1 points" in str(said.value)
    assert in_book(folder)["ada"] == (1, "See #me.", False)
    take(sheet, replace=True)
    assert in_book(folder)["ada"] == (2, "See #me.", False)
    assert in_book(folder)["bob"] == (1, "Better.", False)
    assert take(fill())["new"] == 0  # a comment from elsewhere may hold a #


def test_a_locked_gradebook_takes_nothing_and_says_so(folder, fill, take, monkeypatch):
    sheet = fill({"ada": "2", "bob": "1"})
    monkeypatch.setattr("sqlite3.dbapi2.connect", partial(sqlite3.connect, timeout=0))
    with sqlite3.connect(folder.gradebook) as other:
        other.execute("begin immediate")
        with pytest.raises(GradebookError, match="cannot be written"):
            take(sheet)
        other.rollback()
    assert in_book(folder)["ada"] == (None, None, True)


# Comments with keys


def test_keys_are_written_out(folder, fill, take):
    (folder.root / BANK).write_text(
        '[all]\nnumber = "Give a number."\naxis = "Of all."\n[90-why]\naxis = "Which axis?"\n'
    )
    take(fill({"ada": "1"}, {"ada": "Nearly: #axis #number, please. 5 # 3, a#axis"}))
    assert in_book(folder)["ada"][1] == "Nearly: Which axis? Give a number., please. 5 # 3, a#axis"


def test_an_unknown_key_says_which_are_near(folder, fill, take):
    (folder.root / BANK).write_text('[all]\nnumber = "Give a number."\n')
    with pytest.raises(BadSheet, match="no comment #nubmer; nearest: #number"):
        take(fill({"ada": "1"}, {"ada": "#nubmer"}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[all", "cannot be read as TOML"),
        ('number = "x"', r"number stands under no \[all\]"),
        ("[all]\nnumber = 3", r"\[all\] number: a key is a letter"),
        ('[all]\n"1 2" = "x"', r"\[all\] 1 2: a key is a letter"),
    ],
)
def test_a_bank_that_cannot_be_used_says_where(folder, fill, text, words):
    (folder.root / BANK).write_text(text)
    with pytest.raises(ValueError, match=words):
        fill()


# A second marker


def test_second_marks_stay_out_of_the_gradebook(folder, chapter, fill, take):
    take(fill({"ada": "2", "bob": "0", "cleo": "1"}))
    before = in_book(folder)
    sheet = fill({"ada": "2", "bob": "1", "dan": "0"}, marker="B")
    assert take(sheet)["marker"] == "B"  # the sheet says whose it is
    assert in_book(folder) == before
    (found,) = agreements(folder, chapter)
    assert (found["exercise"], found["marker"]) == (CELL, "B")
    assert (found["agreement"].n, found["agreement"].same) == (2, 1)
    assert found["agreement"].difference == 0.5
    with pytest.raises(BadSheet, match="has 2 points, the sheet says 1 points"):
        take(fill({"ada": "1"}, marker="B"))


def test_a_second_marker_does_not_see_the_first(fill, take):
    take(fill({"ada": "2"}, {"ada": "Exactly so."}))
    text = fill(marker="B").read_text()
    assert "Exactly so." not in text
    assert {row["points"] for row in csv.DictReader(io.StringIO(text))} == {""}


def test_marks_of_earlier_work_are_not_compared(
    folder, chapter, fill, take, class_of, filled, course, engine
):
    take(fill({"ada": "2", "bob": "1"}))
    take(fill({"ada": "1", "bob": "1"}, marker="B"))
    class_of(ada=filled(why="The axes are others."))
    grade_chapter(folder, SLUG, course=course, engine=engine)
    take(fill({"ada": "2"}))
    (found,) = agreements(folder, chapter)
    assert found["agreement"].n == 1


def test_a_sheet_is_of_one_marker(fill, take):
    with pytest.raises(ValueError, match="is the sheet of B, not of C"):
        take(fill({"ada": "1"}, marker="B"), "C")


def test_answers_are_drawn_the_same_each_time(folder, chapter):
    found = answers(folder, chapter)
    draws = [{one.id for one in drawn(folder, found, number)} for number in range(6)]
    assert [len(draw) for draw in draws] == [0, 1, 2, 3, 4, 4]
    assert all(fewer <= more for fewer, more in itertools.pairwise(draws))
    assert draws[2] == {one.id for one in drawn(folder, found[::-1], 2)}
    seen = set()
    for key in range(30):  # every answer may be drawn
        (folder.root / "secret.key").write_text(str(key))
        seen |= {one.student for one in drawn(folder, found, 1)}
    assert seen == set(TEXTS)


# The command


def test_the_command_goes_the_whole_way(folder, command, capsys, fill):
    where = ("--class-dir", folder.root)
    assert command("marking", "90", "--export", *where) == 0
    assert f"{SLUG}.csv" in capsys.readouterr().out
    assert command("marking", "90", "--agreement", *where) == 0
    assert "there are no second marks" in capsys.readouterr().out
    marks = {"ada": "2", "bob": "0", "cleo": "1"}
    sheet = fill(marks, {"dan": "Hm."})
    assert command("marking", "90", "--import", sheet, *where) == 0
    said = capsys.readouterr().out
    assert "3 marks, 3 of them new, are in the gradebook; 1 answers" in said
    assert "comments without points were left out: " in said
    assert command("marking", "90", "--export", "--draw", 4, "--marker", "B/C", *where) == 0
    assert f"{SLUG}-B%2FC.csv" in os.listdir(folder.root / "marking")
    assert command("marking", "90", "--import", fill(marks, marker="B2"), *where) == 0
    assert command("marking", "90", "--agreement", *where) == 0
    assert "kappa: 1.00" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [("--export", "--draw", "3"), ("--agreement", "--draw", "3", "--marker", "B")]
)
def test_what_does_not_go_together_is_said(folder, command, capsys, words):
    assert command("marking", "90", *words, "--class-dir", folder.root) == 2
    assert "--draw N goes with --export and --marker NAME" in capsys.readouterr().err
