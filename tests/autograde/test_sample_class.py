"""The sample class: recipes become submissions, and each learner gets the marks that are due.

The example chapter is graded with the real engine, and so are the chapters of the book.
"""

import json
import shutil
from dataclasses import replace

import pytest

from autograde import record as recording
from autograde.chapters import Course
from autograde.damage import DAMAGE, RecipeError
from autograde.grade import grade_chapter
from autograde.plan import ClassFolder
from autograde.report import table
from autograde.run import Engine, Limits
from autograde.sample_class import (
    MARK,
    Recipe,
    build_class,
    marks_due,
    recipes,
    submission,
    surprises,
)
from autograde.source import load

SLUG = "90-example"


def quick():
    return Engine(Limits(cpu=1, wall=8))


# Every learner gets the marks that are due


def graded(root, prepared, course, slug):
    """The table of the sample class, graded with the real engine, and its folder."""
    folder = ClassFolder(root)
    root.mkdir()
    shutil.copy(prepared / "gradebook.db", root)  # nbgrader takes seconds to make an empty one
    (root / MARK).write_text("")
    assert build_class(folder, course, [slug]) == [slug]
    outcome = grade_chapter(folder, slug, course=course, engine=quick)
    assert outcome.problems == {}
    return table(folder, outcome.chapter), folder


@pytest.fixture(scope="module")
def example(course, chapter, prepared, tmp_path_factory):
    return graded(tmp_path_factory.mktemp("sample") / "class", prepared, course, SLUG)


def test_each_learner_of_the_example_gets_the_marks_that_are_due(example, course, chapter):
    shown, _ = example
    assert len(shown.rows) == 8
    assert surprises(course, chapter, shown) == []


def test_a_mark_that_is_not_due_is_a_surprise(example, course, chapter):
    shown, _ = example
    lucky = [
        replace(row, marks=row.marks | {"90-double": 3.0}) if row.student == "mallory" else row
        for row in shown.rows
    ]
    assert surprises(course, chapter, replace(shown, rows=tuple(lucky))) == [
        "mallory, 90-double: 3 points, mallory.yml says 0"
    ]


def test_repairs_of_the_example_are_told(example):
    _, folder = example
    told = "\n".join(folder.read_record("Zoë Łuk [2]", SLUG)["notes"])
    for word in ("90-example (1).ipynb", "byte order mark", "no time", "lost its metadata"):
        assert word in told
    told = "\n".join(folder.read_record("mallory", SLUG)["notes"])
    for word in ("tests were edited", "points changed", "skip-execution"):
        assert word in told


def test_building_the_class_again_changes_nothing_so_nothing_is_graded_again(example, course):
    _, folder = example
    times = {p: p.stat().st_mtime_ns for p in folder.root.glob("submitted/*/*/*")}
    build_class(folder, course, [SLUG])
    assert {p: p.stat().st_mtime_ns for p in folder.root.glob("submitted/*/*/*")} == times
    outcome = grade_chapter(folder, SLUG, course=course, engine=quick)
    assert (outcome.graded, len(outcome.unchanged)) == ([], 8)


def test_a_learner_without_a_recipe_leaves_the_class(example, course):
    _, folder = example
    folder.submission("nobody", SLUG).mkdir(parents=True)
    build_class(folder, course, [SLUG])
    assert "nobody" not in folder.students(SLUG)


@pytest.mark.parametrize("slug", Course().slugs())
def test_each_learner_of_the_sample_class_gets_the_marks_that_are_due(slug, prepared, tmp_path):
    course = Course()
    shown, _ = graded(tmp_path / "class", prepared, course, slug)
    assert len(shown.rows) >= 8
    assert surprises(course, load(slug), shown) == []


# Recipes


@pytest.fixture
def recipe():
    return Recipe("ada", "about", "ada.yml", answers={}, damage={}, marks={"default": "full"})


@pytest.fixture
def handed_in(recipe, chapter, course, fresh_release):
    def make(**changes):
        return submission(replace(recipe, **changes), chapter, course, fresh_release)

    return make


def test_without_a_word_everything_is_the_reference_solution(handed_in):
    sources = [cell["source"] for cell in json.loads(handed_in()["90-example.ipynb"])["cells"]]
    assert any("return 2 * x" in source and "BEGIN SOLUTION" not in source for source in sources)
    assert "They sum over different axes." in sources


def test_a_chapters_own_word_adds_to_what_holds_for_all(course, tmp_path):
    folder = tmp_path / "tests" / "data" / "class"
    folder.mkdir(parents=True)
    (folder / "a.yml").write_text(
        "student: a\nabout: x\nanswers: {default: stub}\nmarks: {default: none}\n"
        "chapters:\n  90-example: {answers: {90-double: right}, marks: {90-double: full}}\n"
        "  91-other:\n"
    )
    here = Course(tmp_path)
    (one,) = recipes(here, SLUG)
    assert one.answers == {"default": "stub", "90-double": "right"}
    assert recipes(here, "91-other")[0].answers == {"default": "stub"}
    assert recipes(here, "92-not-theirs") == []


def test_marks_due_are_points(recipe, chapter):
    due = marks_due(replace(recipe, marks={"default": "none", "90-double": "full"}), chapter)
    assert due == {"90-double": 3.0, "90-row-means": 0.0}


@pytest.mark.parametrize("kind", sorted(set(DAMAGE) - {"copy-cell", "old-attempt", "add-cell"}))
def test_every_damage_changes_the_notebook(handed_in, kind):
    assert handed_in(damage={kind: True}) != handed_in()
    assert handed_in(damage={kind: False}) == handed_in()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"answers": {"90-none": "stub"}}, "no exercise"),
        ({"answers": {"default": "perfect"}}, "cannot be answered"),
        ({"answers": {"90-double": {"wrong": "none"}}}, "square"),
        ({"damage": {"fire": True}}, "unknown damage 'fire'"),
        ({"damage": {"copy-cell": "90-none"}}, "no cell '90-none'"),
    ],
)
def test_a_recipe_that_cannot_be_made_says_what_is_known(handed_in, changes, said):
    with pytest.raises(RecipeError, match=said):
        handed_in(**changes)


def test_marks_that_are_no_marks_are_refused(recipe, chapter):
    with pytest.raises(RecipeError, match="full, none or a number"):
        marks_due(replace(recipe, marks={"default": "most"}), chapter)


def test_a_folder_with_another_class_is_not_touched(class_of, course):
    folder = class_of(ada=b"{}")
    with pytest.raises(RecipeError, match="holds another class"):
        build_class(folder, course, [SLUG])
    assert folder.students(SLUG) == ["ada"]


def test_the_release_of_a_class_is_the_notebook_that_students_get(chapter, prepared, fresh_release):
    released = json.loads((prepared / "release" / SLUG / f"{SLUG}.ipynb").read_text())
    assert [cell["metadata"] for cell in released["cells"]] == [
        json.loads(json.dumps(cell.metadata)) for cell in fresh_release.cells
    ]
    assert recording.COURSE_ID == "plainformer"
