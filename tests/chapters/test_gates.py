"""What every chapter promises: sound exercises, honest judging, nothing leaked, nothing stale."""

import json

import pytest

from autograde.audit import VISIBLE_SHARE, audit, visible_share
from autograde.build import student_bytes
from autograde.chapters import Course
from autograde.run import Engine
from autograde.source import TIERS, load
from autograde.source_cells import HIDDEN, SOLUTION

COURSE = Course()
SLUGS = COURSE.slugs()
CORE_MINUTES = 60  # the core exercises of a chapter, together
SHORT_LINES = 20  # a line shorter than this says nothing about where it came from

pytestmark = pytest.mark.parametrize("slug", SLUGS)


@pytest.fixture(scope="module")
def engine():
    with Engine() as running:
        yield running


@pytest.fixture
def chapter(slug):
    return load(slug)


def region_lines(chapter, markers) -> set[str]:
    """The lines inside a kind of region, over all cells."""
    lines = set()
    for cell in chapter.cells:
        inside = False
        for line in cell.text.splitlines():
            if markers[0] in line or markers[1] in line:
                inside = markers[0] in line
            elif inside and len(line.strip()) >= SHORT_LINES:
                lines.add(line.strip())
    return lines


def test_the_committed_notebook_is_what_the_source_builds(slug, chapter):
    assert COURSE.notebook(slug).read_bytes() == student_bytes(chapter), (
        f"chapters/{slug}.ipynb is stale; run `python -m autograde release {slug}`"
    )


def test_nothing_of_solutions_or_hidden_tests_is_released(slug, chapter):
    released = json.loads(COURSE.notebook(slug).read_text())
    shown = {
        line.strip() for cell in released["cells"] for line in "".join(cell["source"]).split("\n")
    }
    given = {line.strip() for cell in chapter.cells for line in cell.stub_text.splitlines()}
    for markers in (SOLUTION, HIDDEN):
        assert not (region_lines(chapter, markers) - given) & shown


def test_known_answers_are_judged_rightly(slug, chapter, engine):
    findings = audit(slug, engine)
    assert [problem for finding in findings for problem in finding.problems] == []
    assert visible_share(findings) >= VISIBLE_SHARE


def test_the_released_notebook_scores_nothing(slug, chapter, engine):
    verdicts = engine.run(chapter, {}).values()
    assert [v.test for v in verdicts if v.score] == []
    assert {v.state for v in verdicts} == {"not written"}


def test_exercises_have_two_hints_a_place_to_jump_to_and_times(slug, chapter):
    for exercise in chapter.exercises.values():
        numbers = [hint.header.get("hint") for hint in exercise.hints]
        assert numbers == [1, 2], f"{exercise.id}: hints {numbers}"
        assert any(f"(ex-{exercise.id})=" in cell.text for cell in chapter.cells), exercise.id
        assert 1 <= exercise.minutes <= 30, exercise.id
        assert len(exercise.tests) >= 2 or exercise.kind in ("predict", "figure"), exercise.id


def test_the_core_is_four_or_five_exercises_and_an_hour(slug, chapter):
    tiers = {t: [e for e in chapter.exercises.values() if e.tier == t] for t in TIERS}
    assert 4 <= len(tiers["core"]) <= 5
    assert sum(exercise.minutes for exercise in tiers["core"]) <= CORE_MINUTES


def test_an_exercise_needs_only_what_came_before(slug, chapter):
    known = set(SLUGS[: SLUGS.index(slug)])
    for earlier in known.copy():
        known |= set(load(earlier).exercises)
    for exercise in chapter.exercises.values():
        assert set(exercise.needs) <= known, exercise.id
        known.add(exercise.id)
