"""Right answers that look unusual: every one of them gets all its points."""

from pathlib import Path

import pytest
import yaml

from autograde.chapters import Course
from autograde.run import Engine, Limits
from autograde.source import load

HERE = Path(__file__).parent
CASES = [case for file in sorted(HERE.glob("*.yml")) for case in yaml.safe_load(file.read_text())]
ROOTS = {"90": HERE.parent / "data", "91": HERE / "data"}
SLUGS = {"90": "90-example", "91": "91-border"}


@pytest.fixture(scope="module")
def chapters():
    return {number: load(slug, Course(ROOTS[number])) for number, slug in SLUGS.items()}


@pytest.fixture(scope="module")
def engine():
    with Engine(Limits(cpu=5, wall=15, memory=1.0)) as running:
        yield running


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_right_answer_gets_all_points(engine, chapters, case):
    exercise = case.get("exercise", "90-double")
    verdicts = engine.run(
        chapters[exercise[:2]],
        {exercise: case["answer"]},
        exercises=[exercise],
        extra=case.get("helpers", ()),
    )
    assert verdicts
    assert [v.message for v in verdicts.values() if v.score != v.points] == []


def test_the_model_answers_get_all_points_too(engine, chapters):
    """So a failure above is about the unusual, and not about the chapter."""
    for chapter in chapters.values():
        answers = {one.id: one.cell.solution_text for one in chapter.exercises.values()}
        verdicts = engine.run(chapter, answers)
        assert [v.message for v in verdicts.values() if v.score != v.points] == []


def test_the_untouched_answers_get_none(engine, chapters):
    for chapter in chapters.values():
        assert {v.score for v in engine.run(chapter, {}).values()} == {0.0}


def test_every_case_has_a_name_of_its_own():
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names))
    assert len(names) >= 60
