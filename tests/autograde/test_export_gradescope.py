"""results.json against a schema that was written from Gradescope's own specification."""

import json

import jsonschema
import pytest

from autograde.grade import grade_chapter

SLUG = "90-example"
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
# "Autograder Specifications", gradescope-autograders.readthedocs.io/en/latest/specs: every key
# there, and no other.
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["score", "tests"],
    "properties": {
        "score": {"type": "number"},
        "execution_time": {"type": "number"},
        "output": {"type": "string"},
        "visibility": VISIBILITY,
        "stdout_visibility": VISIBILITY,
        "extra_data": {"type": "object"},
        "leaderboard": {"type": "array"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["score"],
                "properties": {
                    "score": {"type": "number"},
                    "max_score": {"type": "number"},
                    "name": {"type": "string"},
                    "number": {"type": "string"},
                    "output": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": VISIBILITY,
                    "extra_data": {"type": "object"},
                },
            },
        },
    },
}


@pytest.fixture
def results(class_of, filled, course, engine, command, tmp_path):
    """The results.json of each student, as the command writes them."""
    answers = {"double": "def double(x):\n    return 'wrong'", "why": "Other axes."}
    made = class_of(**{"Zoë Ł": filled(**answers), "ada": filled(), "broken": b"{"})
    grade_chapter(made, SLUG, course=course, engine=engine)
    (made.root / "course.toml").write_text('tiers = ["core"]')
    command("export", "--class-dir", made.root, "--to", tmp_path / "to", "--gradescope")
    return {
        path.parent.name: json.loads(path.read_text(encoding="utf-8"))
        for path in (tmp_path / "to" / "gradescope" / SLUG).glob("*/results.json")
    }


def test_every_graded_student_has_one_that_fits_the_specification(results):
    assert set(results) == {"Zoë Ł", "ada"}
    for one in results.values():
        jsonschema.validate(one, SCHEMA)


def test_scores_are_the_gradebooks_and_the_sum_is_what_is_due(results):
    tests = {one["name"]: one for one in results["Zoë Ł"]["tests"]}
    assert {name: (one["score"], one["max_score"]) for name, one in tests.items()} == {
        "90-double-by-hand": (0.0, 1.0),
        "90-double-general": (0.0, 2.0),
        "90-row-means-by-hand": (0.0, 3.0),
        "90-why": (0.0, 2.0),
    }
    assert results["Zoë Ł"]["score"] == 0.0
    assert results["Zoë Ł"]["output"] == "0 of 3 points; no deadline"
    assert tests["90-row-means-by-hand"]["tags"] == ["more", "does not count"]
    assert tests["90-why"]["output"] == "to be read by a person"
    assert "expected 6, got 9" in tests["90-double-by-hand"]["output"]


def test_a_test_with_a_hidden_part_is_shown_when_grades_are_published(results):
    shown = {one["name"]: one["visibility"] for one in results["ada"]["tests"]}
    assert shown.pop("90-double-general") == "after_published"
    assert set(shown.values()) == {"visible"}
    assert "canary_of_the_hidden_test" not in json.dumps(results)


def test_nothing_that_a_hidden_part_said_is_shown_ever(
    class_of, filled, course, engine, command, tmp_path
):
    folder = class_of(ada=filled(double="def double(x):\n    return 'wrong'"))
    grade_chapter(folder, SLUG, course=course, engine=engine)
    (path,) = (folder.root / "records").rglob("ada.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    (test,) = [one for one in record["tests"] if one["test"] == "90-double-general"]
    test |= {"part": "hidden", "message": "double(8191): expected 16382, got 3"}
    path.write_text(json.dumps(record), encoding="utf-8")
    command("export", "--class-dir", folder.root, "--to", tmp_path / "to", "--gradescope")
    (path,) = (tmp_path / "to").rglob("results.json")
    said = path.read_text(encoding="utf-8")
    assert "8191" not in said
    assert "the hidden part, with other numbers, did not" in said
