"""Links from a learner's feedback into the book lead to a place that is there."""

import re

import pytest

from autograde.chapters import Course
from autograde.sections import section_of
from autograde.source import load

COURSE = Course()


@pytest.mark.parametrize("slug", COURSE.slugs())
def test_the_section_of_every_exercise_has_its_anchor_above_the_exercise(book, slug):
    page = (book.html / "chapters" / f"{slug}.html").read_text(encoding="utf-8")
    chapter = load(slug, COURSE)
    exercises = [one.cell for one in chapter.exercises.values()]
    assert exercises
    for cell in [*exercises, *chapter.written]:
        section = section_of(chapter, cell)
        assert page.count(f'id="{section.anchor}"') == 1, f"{cell.id}: no place for {section.title}"
        start = page.index(f'id="{section.anchor}"')
        next_part = page.find("<h2>", page.index("<h2>", start) + 1)
        own = re.search(rf'id="ex-{re.escape(cell.id)}"', page)
        assert start < own.start() < (next_part if next_part > 0 else len(page)), cell.id
