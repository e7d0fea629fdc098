"""Which section a cell lies in, and its place in the book."""

import pytest
from docutils.nodes import make_id

from autograde.chapters import Course
from autograde.sections import _anchor, section_of
from autograde.source import load


def test_a_section_counts_from_one_and_ends_where_the_next_begins(tmp_path):
    chapter = load("02-attention")
    found = {
        one.id: (section.number, section.title)
        for one in chapter.exercises.values()
        if (section := section_of(chapter, one.cell))
    }
    assert found["02-softmax"] == (3, "From scores to weights: the softmax")
    assert found["02-hand-attention"] == (4, "The whole function")
    assert found["02-people-say-attention"] == (9, "People often say")


def test_before_the_first_heading_there_is_none(chapter):
    assert section_of(chapter, chapter.cells[0]) is None


@pytest.mark.parametrize("slash", ["", "/"])
def test_its_address_is_a_page_of_the_book_and_a_place_on_it(chapter, slash):
    section = section_of(chapter, chapter.exercises["90-double"].cell)
    address = section.address("https://example.org/course" + slash)
    assert address == "https://example.org/course/chapters/90-example.html#doubles"


@pytest.mark.parametrize(
    "title", ["Who matches whom: `@`", "2 to 3", "Café -- au lait?", "Why the root?", "a_b (c)"]
)
def test_an_anchor_is_what_docutils_makes_of_a_heading(title):
    assert _anchor(title) == make_id(title)


def test_every_exercise_of_the_course_lies_in_a_section():
    course = Course()
    for slug in course.slugs():
        chapter = load(slug, course)
        cells = [*(one.cell for one in chapter.exercises.values()), *chapter.written]
        assert [cell.id for cell in cells if section_of(chapter, cell) is None] == []
