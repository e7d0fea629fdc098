"""What happens to notebooks on their way: the ways to spoil one that recipes can name."""

import copy
from collections.abc import Callable

import nbformat


class RecipeError(ValueError):
    """A recipe says something that cannot be made; the message names the file and what is known."""


def _place(notebook, ident: str) -> int:
    for place, cell in enumerate(notebook.cells):
        if cell.metadata.get("nbgrader", {}).get("grade_id") == ident:
            return place
    raise RecipeError(f"there is no cell {ident!r} to damage")


def _graded(notebook, *, solution: bool):
    for cell in notebook.cells:
        meta = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and meta.get("solution" if solution else "grade"):
            yield cell


def _copy_cell(notebook, ident: str) -> None:
    """The cell is there twice, label and all: stock nbgrader refuses the whole class for it."""
    place = _place(notebook, ident)
    notebook.cells.insert(place + 1, copy.deepcopy(notebook.cells[place]))


def _old_attempt(notebook, told: dict) -> None:
    """An earlier attempt is still there, above the answer, under the same label."""
    place = _place(notebook, told["exercise"])
    older = copy.deepcopy(notebook.cells[place])
    older.source = told["source"]
    notebook.cells.insert(place, older)


def _strip_metadata(notebook, _) -> None:
    """What is left after a trip through Colab: sources and outputs."""
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode()
        cell.pop("id", None)
    notebook.metadata = nbformat.NotebookNode(colab={"provenance": []})


def _noisy(notebook, _) -> None:
    """Every answer talks on both streams and warns: in stock nbgrader that costs all points.

    A kernel of Triton is no function, so it says its word once, when its cell is run.
    """
    for cell in _graded(notebook, solution=True):
        name = cell.source.partition("def ")[2].partition("(")[0]
        cell.source += f"""


import sys
import warnings


def _loudly(function):
    def loud(*args, **kwargs):
        print("working: 100%")
        print("working: 100%", file=sys.stderr)
        warnings.warn("deprecated since yesterday")
        return function(*args, **kwargs)

    return loud


print("loaded", file=sys.stderr)
if isinstance({name}, type(_loudly)):
    {name} = _loudly({name})"""


def _skip_tests(notebook, _) -> None:
    """The tag that makes stock nbgrader pass over a test, and give full marks for it."""
    for cell in _graded(notebook, solution=False):
        cell.metadata.tags = ["skip-execution"]


def _edit_tests(notebook, _) -> None:
    """Every test says yes, and is worth a hundred points."""
    for cell in _graded(notebook, solution=False):
        cell.source = "assert True"
        cell.metadata.nbgrader.points = 100.0


def _delete_tests(notebook, _) -> None:
    gone = [id(cell) for cell in _graded(notebook, solution=False)]
    notebook.cells = [cell for cell in notebook.cells if id(cell) not in gone]


def _add_cell(notebook, told: dict) -> None:
    """The learner's own cell, above an exercise."""
    cell = nbformat.v4.new_code_cell(told["source"], id=f"own-{_place(notebook, told['before'])}")
    notebook.cells.insert(_place(notebook, told["before"]), cell)


DAMAGE: dict[str, Callable] = {
    "copy-cell": _copy_cell,
    "old-attempt": _old_attempt,
    "strip-metadata": _strip_metadata,
    "noisy": _noisy,
    "skip-tests": _skip_tests,
    "edit-tests": _edit_tests,
    "delete-tests": _delete_tests,
    "add-cell": _add_cell,
}
