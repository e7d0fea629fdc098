"""The command feedback: who has a page, where it lies, and what it is made from."""

import json
import re

import pytest

from autograde.feedback import write_feedback
from autograde.grade import grade_chapter
from autograde.record import gradebook

SLUG = "90-example"


@pytest.fixture
def folder(class_of, filled, course, engine):
    made = class_of(
        ada=filled(double="def double(x):\n    return wrong", why="<b>bold</b>"), broken=b"{"
    )
    grade_chapter(made, SLUG, course=course, engine=engine)
    return made


def test_everybody_who_was_graded_has_a_page_where_nbgrader_looks_for_it(folder, course):
    assert write_feedback(folder, SLUG, course=course) == (["ada"], ["broken"])
    page = folder.root / "feedback" / "ada" / SLUG / f"{SLUG}.html"
    assert "expected 6, got 9" in page.read_text(encoding="utf-8")
    assert "bold" not in page.read_text(encoding="utf-8")


def test_a_comment_in_the_gradebook_reaches_the_page(folder, course):
    with gradebook(folder) as book:
        book.find_comment("90-why", SLUG, SLUG, "ada").manual_comment = "Say which axis."
        book.db.commit()
    write_feedback(folder, SLUG, course=course)
    assert "Say which axis." in folder.feedback("ada", SLUG).read_text(encoding="utf-8")


def test_the_command_says_who_has_no_page(folder, command, capsys):
    assert command("feedback", "--class-dir", folder.root, "--json") == 1
    said = json.loads(capsys.readouterr().out)["chapters"]
    assert said == [{"chapter": SLUG, "written": ["ada"], "not graded": ["broken"]}]


def test_a_record_from_before_parts_were_told_apart_gives_a_page(folder, course):
    record = folder.read_record("ada", SLUG)
    for test in record["tests"]:
        del test["part"]
    folder.write_record(record)
    write_feedback(folder, SLUG, course=course)
    page = folder.feedback("ada", SLUG).read_text(encoding="utf-8")
    assert "Run the visible part of this check" in page
    assert "expected 6" not in page  # it may be a hidden part's


def test_the_class_says_where_it_reads_the_book(folder, command, capsys):
    rules = folder.root / "course.toml"
    rules.write_text('book = "https://example.org/course/"')
    command("feedback", "--class-dir", folder.root)
    page = folder.feedback("ada", SLUG).read_text(encoding="utf-8")
    assert 'href="https://example.org/course/chapters/90-example.html#doubles"' in page
    rules.write_text('book = "javascript:alert(1)"')
    assert command("feedback", "--class-dir", folder.root) == 2
    assert "book is an address like" in capsys.readouterr().err


def test_it_says_what_the_rules_of_the_class_make_of_the_points(folder, course):
    page = folder.feedback("ada", SLUG)
    write_feedback(folder, SLUG, course=course)
    assert "points count" not in page.read_text(encoding="utf-8")
    (folder.root / "course.toml").write_text(
        'time_zone = "Europe/Berlin"\n[late]\ncost_per_day = 0.25\n[deadlines]\n90 = 2001-01-01\n'
    )
    write_feedback(folder, SLUG, course=course)
    said = page.read_text(encoding="utf-8")
    assert "0 of 8 points count: " in said
    assert "days late: 1 of the points lost" in said
    assert re.search(r"received \d{4}-\d\d-\d\d \d\d:\d\d CES?T", said)
