"""Which cell answers which exercise, whatever was done to the notebook."""

import copy
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograde.extract import extract
from autograde.intake import read_notebook

RIGHT = "def double(x):\n    return 2 * x"
OLDER = "def double(x):\n    return x * x"
MEANS = "def row_means(x):\n    return x.mean(dim=-1)"


@pytest.fixture
def found(tmp_path, chapter):
    """What is extracted from a notebook, through a file as in real life."""

    def run(notebook):
        path = tmp_path / "90-example.ipynb"
        path.write_text(json.dumps(notebook), encoding="utf-8")
        return extract(read_notebook(path), chapter)

    return run


def strip(notebook):
    """As Colab leaves it: no metadata, no cell ids."""
    for cell in notebook.cells:
        cell.metadata = {}
        cell.pop("id", None)
    return notebook


def place_of(notebook, cell):
    return next(i for i, one in enumerate(notebook.cells) if one is cell)


# Honest notebooks


def test_an_untouched_notebook_answers_nothing_and_needs_no_repair(found, released):
    result = found(released)
    assert (result.answers, result.written, result.extra, result.notes) == ({}, {}, (), [])


def test_answers_are_found_and_nothing_else_is_said(found, filled):
    result = found(filled(double=RIGHT, row_means=MEANS, why="Other axes."))
    assert result.answers == {"90-double": RIGHT, "90-row-means": MEANS}
    assert result.written == {"90-why": "Other axes."}
    assert (result.extra, result.notes) == ((), [])


def test_the_reference_solution_itself_is_an_answer(found, filled, chapter):
    solution = chapter.exercises["90-double"].cell.solution_text
    assert found(filled(double=solution)).answers == {"90-double": solution}


@pytest.mark.parametrize(
    "source",
    [
        "# I tried\ndef double(x):\n    raise NotImplementedError  # YOUR CODE HERE",
        'def double(x):\n    """My docstring."""\n    raise NotImplementedError',
        "",
    ],
)
def test_a_comment_or_a_docstring_is_not_an_answer(found, filled, source):
    assert found(filled(double=source)).answers == {}


def test_an_answer_that_does_not_compile_is_still_the_answer(found, filled):
    assert found(filled(double="def double(x)\n    return")).answers == {
        "90-double": "def double(x)\n    return"
    }


# Labels lost, doubled, moved


def test_without_metadata_answers_are_found_by_name(found, filled):
    result = found(strip(filled(double=RIGHT, row_means=MEANS, why="Other axes.")))
    assert result.answers == {"90-double": RIGHT, "90-row-means": MEANS}
    assert result.written == {"90-why": "Other axes."}
    assert any("lost its metadata" in note for note in result.notes)


def test_without_metadata_an_untouched_notebook_still_answers_nothing(found, released):
    result = found(strip(released))
    assert (result.answers, result.written, result.extra) == ({}, {}, ())


def test_an_identical_copy_changes_nothing(found, filled, cell_of):
    notebook = filled(double=RIGHT)
    place = place_of(notebook, cell_of(notebook, "90-double"))
    notebook.cells.insert(place + 1, copy.deepcopy(notebook.cells[place]))
    assert found(notebook).answers == {"90-double": RIGHT}


@pytest.mark.parametrize("where", ["above", "at the end"])
def test_of_two_attempts_the_one_that_the_tests_meet_counts(found, filled, cell_of, where):
    notebook = filled(double=RIGHT)
    other = copy.deepcopy(cell_of(notebook, "90-double"))
    other.source = OLDER
    place = place_of(notebook, cell_of(notebook, "90-double"))
    notebook.cells.insert(place if where == "above" else len(notebook.cells), other)
    result = found(notebook)
    assert result.answers == {"90-double": RIGHT}
    assert any("graded cell" in note for note in result.notes)


def test_a_second_attempt_with_its_own_copy_of_the_test_counts(found, filled, cell_of):
    notebook = filled(double=OLDER)
    second = copy.deepcopy(cell_of(notebook, "90-double"))
    second.source = RIGHT
    notebook.cells += [second, copy.deepcopy(cell_of(notebook, "90-double-general"))]
    assert found(notebook).answers == {"90-double": RIGHT}


@pytest.mark.parametrize("copy_source", [None, "def double(x)\n    return"])
def test_a_blank_or_broken_copy_never_displaces_an_answer(
    found, filled, released, cell_of, copy_source
):
    notebook = filled(double=RIGHT)
    other = copy.deepcopy(cell_of(released, "90-double"))
    other.source = copy_source or other.source
    notebook.cells.insert(place_of(notebook, cell_of(notebook, "90-double")) + 1, other)
    assert found(notebook).answers == {"90-double": RIGHT}


def test_an_answer_in_a_cell_of_its_own_is_found(found, released, cell_of, own_cell):
    place = place_of(released, cell_of(released, "90-double"))
    released.cells.insert(place + 1, own_cell(RIGHT))
    result = found(released)
    assert result.answers == {"90-double": RIGHT}
    assert any("by the name it defines" in note for note in result.notes)


def test_swapped_labels_do_not_swap_answers(found, filled, cell_of):
    notebook = filled(double=RIGHT, row_means=MEANS)
    one, other = cell_of(notebook, "90-double"), cell_of(notebook, "90-row-means")
    one.metadata.nbgrader.grade_id, other.metadata.nbgrader.grade_id = (
        "90-row-means",
        "90-double",
    )
    assert found(notebook).answers == {"90-double": RIGHT, "90-row-means": MEANS}


def test_two_answers_in_one_cell_are_two_answers(found, filled):
    result = found(filled(double=f"{RIGHT}\n\n\n{MEANS}"))
    assert set(result.answers) == {"90-double", "90-row-means"}


def test_a_deleted_exercise_is_said_to_be_missing(found, filled, cell_of):
    notebook = filled(row_means=MEANS)
    notebook.cells.remove(cell_of(notebook, "90-double"))
    result = found(notebook)
    assert result.answers == {"90-row-means": MEANS}
    assert "90-double: its cell is missing" in result.notes


@pytest.mark.parametrize("kind", ["raw", "markdown"])
def test_a_cell_retyped_by_accident_still_answers(found, filled, cell_of, kind):
    notebook = filled(double=RIGHT)
    cell_of(notebook, "90-double").cell_type = kind
    assert found(notebook).answers == {"90-double": RIGHT}


@pytest.mark.parametrize("kind", ["raw", "markdown"])
@pytest.mark.parametrize("labels", [True, False])
def test_a_retyped_cell_is_mentioned(found, filled, cell_of, kind, labels):
    notebook = filled(double=RIGHT)
    cell_of(notebook, "90-double").cell_type = kind
    result = found(notebook if labels else strip(notebook))
    assert result.answers == {"90-double": RIGHT}
    assert f"90-double: cell 5 is a {kind} cell; read as code all the same" in result.notes


@pytest.mark.parametrize("kind", ["raw", "code"])
def test_a_retyped_written_answer_is_found(found, filled, cell_of, kind):
    notebook = filled(why="Other axes.")
    cell_of(notebook, "90-why").cell_type = kind
    assert found(notebook).written == {"90-why": "Other axes."}


def test_code_in_a_text_cell_never_displaces_an_answer(found, filled, own_cell):
    notebook = filled(double=RIGHT)
    notebook.cells.insert(5, own_cell(OLDER, "markdown"))
    assert found(notebook).answers == {"90-double": RIGHT}


FIELDS = ["grade_id", "points", "grade", "solution", "locked", "schema_version", "checksum", "task"]


@pytest.mark.parametrize("field", [*FIELDS, "cell_type"])
@pytest.mark.parametrize("value", ["gone", None, 7, "x", "90-double-by-hand", [1], {}, 1e999, True])
def test_no_field_of_nbgrader_costs_an_answer(found, filled, field, value):
    notebook = filled(double=RIGHT, row_means=MEANS, why="Other axes.")
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata and value == "gone":
            cell.metadata.nbgrader.pop(field, None)
        elif "nbgrader" in cell.metadata:
            cell.metadata.nbgrader[field] = value
    result = found(notebook)
    assert result.answers == {"90-double": RIGHT, "90-row-means": MEANS}
    assert result.written == {"90-why": "Other axes."}


@pytest.mark.parametrize("value", [None, 7, "x", [], {"nbgrader": None}, {"tags": None}])
def test_no_shape_of_metadata_costs_an_answer(found, filled, value):
    notebook = filled(double=RIGHT, row_means=MEANS)
    for cell in notebook.cells:
        dict.__setitem__(cell, "metadata", value)
    dict.__setitem__(notebook, "metadata", value)
    assert found(notebook).answers == {"90-double": RIGHT, "90-row-means": MEANS}


def test_a_given_text_under_an_exercises_label_is_no_answer(found, released, cell_of):
    text = next(cell for cell in released.cells if cell.source.startswith("Why is"))
    text.metadata["nbgrader"] = {"grade_id": "90-double"}
    other = copy.deepcopy(cell_of(released, "90-row-means"))
    other.metadata.nbgrader.grade_id = "90-double"
    released.cells.append(other)
    assert found(released).answers == {}


@pytest.mark.filterwarnings("error")
def test_an_odd_escape_in_an_answer_warns_nobody(found, filled):
    answer = "def double(x):\n    '\\d'\n    return 2 * x"
    assert found(filled(double=answer)).answers == {"90-double": answer}


# What a submission says about tests and marks is not believed


def test_edited_points_tests_and_tags_are_noted_and_ignored(found, filled, cell_of):
    notebook = filled(double=RIGHT)
    test = cell_of(notebook, "90-double-by-hand")
    test.source, test.metadata.nbgrader.points = "double = lambda x: 6", 100
    cell_of(notebook, "90-double-general").metadata.tags = ["skip-execution"]
    result = found(notebook)
    assert result.answers == {"90-double": RIGHT}
    assert result.extra == ()
    told = "\n".join(result.notes)
    assert "1 tests were edited; the originals were run: 90-double-by-hand" in told
    assert "1 tests had their points changed; ignored: 90-double-by-hand" in told
    assert "1 cells carry the tag skip-execution; ignored: 7" in told


def test_a_deleted_test_is_noted(found, filled, cell_of):
    notebook = filled(double=RIGHT)
    notebook.cells.remove(cell_of(notebook, "90-double-general"))
    assert found(notebook).notes == [
        "1 tests were deleted; the originals were run: 90-double-general"
    ]


# The learner's own cells


def with_own(notebook, cell_of, own_cell, *sources):
    """Own cells above the first exercise."""
    place = place_of(notebook, cell_of(notebook, "90-double"))
    notebook.cells[place:place] = [own_cell(source) for source in sources]
    return notebook


def test_a_helper_comes_along_and_what_it_needs_does_too(found, filled, cell_of, own_cell):
    answer = "def double(x):\n    return times(2, x)"
    helper, deeper = "def times(n, x):\n    return n * ONE * x", "import math\nONE = math.cos(0)"
    notebook = with_own(filled(double=answer), cell_of, own_cell, deeper, helper)
    assert found(notebook).extra == (deeper, helper)


def test_a_scratch_cell_that_no_answer_needs_is_not_run(found, filled, cell_of, own_cell):
    scratch = "y = 5\nwhile True:\n    y = y"
    notebook = with_own(filled(double=RIGHT), cell_of, own_cell, scratch)
    assert found(notebook).extra == ()


def test_a_local_variable_of_an_answer_asks_for_no_cell(found, filled, cell_of, own_cell):
    answer = "def double(x):\n    y = 2\n    return y * x"
    assert found(with_own(filled(double=answer), cell_of, own_cell, "y = 7")).extra == ()


def test_a_star_import_may_bring_the_missing_name(found, filled, cell_of, own_cell):
    star = "from math import *"
    answer = "def double(x):\n    return x * 2 * cos(0)"
    assert found(with_own(filled(double=answer), cell_of, own_cell, star)).extra == (star,)


def test_an_answer_that_another_answer_calls_comes_along(found, filled):
    calls = "def row_means(x):\n    return double(x).mean(-1) / 2"
    assert found(filled(double=RIGHT, row_means=calls)).extra == (RIGHT,)


def test_of_a_demo_that_was_added_to_only_the_new_lines_are_run(found, filled, released):
    answer = "def double(x):\n    return times(2, x)"
    notebook = filled(double=answer)
    demo = next(cell for cell in notebook.cells if cell.source.startswith("drawn"))
    demo.source += "\n\ndef times(n, x):\n    return n * x"
    assert found(notebook).extra == ("def times(n, x):\n    return n * x",)


def test_an_answer_that_leans_on_a_demo_is_told_so(found, filled):
    result = found(filled(double="def double(x):\n    return x + x + 0 * drawn.sum()"))
    assert result.extra == ()
    assert any("uses drawn from a demonstration" in note for note in result.notes)


def test_notebook_commands_are_taken_out_of_an_answer(found, filled):
    result = found(filled(double=f"%%time\n!pip install nothing\n{RIGHT}"))
    answer = result.answers["90-double"]
    space = {}
    exec(answer, space)
    assert space["double"](3) == 6
    assert any("2 notebook command(s)" in note for note in result.notes)


# Written answers


def test_a_written_answer_in_a_cell_of_its_own_is_found_by_its_place(
    found, released, cell_of, own_cell
):
    written = cell_of(released, "90-why")
    released.cells[place_of(released, written)] = own_cell("Because.", "markdown")
    assert found(released).written == {"90-why": "Because."}


def test_text_elsewhere_is_no_written_answer(found, released, own_cell):
    released.cells.insert(1, own_cell("I like this chapter.", "markdown"))
    assert found(released).written == {}


def test_of_two_written_answers_the_last_counts(found, filled, cell_of):
    notebook = filled(why="First.")
    second = copy.deepcopy(cell_of(notebook, "90-why"))
    second.source = "Second."
    notebook.cells.append(second)
    result = found(notebook)
    assert result.written == {"90-why": "Second."}
    assert any("filled in 2 times" in note for note in result.notes)


# Anything at all


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_shuffling_losing_doubling_or_relabelling_of_cells_makes_it_raise(
    seed, fresh_release, chapter, tmp_path_factory
):
    luck = random.Random(seed)
    notebook = copy.deepcopy(fresh_release)
    labels = [c.metadata.get("nbgrader", {}).get("grade_id") for c in notebook.cells] + [
        7,
        None,
        "",
    ]
    for cell in notebook.cells:
        if luck.random() < 0.3:
            cell.metadata["nbgrader"] = {"grade_id": luck.choice(labels), "points": "many"}
        if luck.random() < 0.3:
            cell.source = luck.choice([RIGHT, MEANS, "def (", "\x00", "%", "x" * 10, "((" * 500])
        if luck.random() < 0.2:
            cell.cell_type = luck.choice(["code", "markdown", "raw", "heading"])
    notebook.cells = luck.choices(notebook.cells, k=len(notebook.cells))
    path = tmp_path_factory.mktemp("sent") / "90-example.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    result = extract(read_notebook(path), chapter)
    assert set(result.answers) <= set(chapter.exercises)
    assert set(result.written) <= {"90-why"}
