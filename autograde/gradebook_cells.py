"""Which cells the gradebook knows of a chapter: new ones come in, removed ones go.

nbgrader refuses to change an assignment once somebody has submitted. A course that grows during the
term needs it, so we do it here, unless a teacher's own scores would be lost.
"""

import json
from typing import TYPE_CHECKING

from nbformat import NotebookNode

from autograde.written import released_text

if TYPE_CHECKING:
    from nbgrader.api import Gradebook


class GradebookError(ValueError):
    """The gradebook cannot take the scores; the message says what to do."""


def save_cells(book: "Gradebook", slug: str, instructor: NotebookNode) -> None:
    """Make the gradebook's cells those of the chapter; submissions get lines for the new ones."""
    book.update_or_create_assignment(slug)
    notebook = book.update_or_create_notebook(
        slug, slug, kernelspec=json.dumps(instructor.metadata.kernelspec)
    )
    cells = [cell for cell in instructor.cells if "nbgrader" in cell.metadata]
    _forget_cells(book, notebook, {cell.metadata.nbgrader.grade_id for cell in cells}, slug)
    with book.db.no_autoflush:
        for cell in cells:
            _save_cell(book, notebook, cell)
    book.db.flush()
    _add_lines(book, notebook.id)
    book.db.commit()


def _save_cell(book: "Gradebook", notebook, cell: NotebookNode) -> None:
    """One cell: what it is worth where it is graded, what students got, and its checksum."""
    from nbgrader.api import GradeCell, SolutionCell, SourceCell
    from nbgrader.utils import compute_checksum, is_grade, is_locked, is_solution

    cell.source = released_text(cell) if is_solution(cell) else cell.source
    name, kind = cell.metadata.nbgrader.grade_id, {"cell_type": cell.cell_type}
    if is_grade(cell):
        worth = float(cell.metadata.nbgrader.points)
        _put(book, notebook, GradeCell, notebook.grade_cells, name, max_score=worth, **kind)
    if is_solution(cell):
        _put(book, notebook, SolutionCell, notebook.solution_cells, name)
    text = {"source": cell.source, "checksum": compute_checksum(cell), "locked": is_locked(cell)}
    _put(book, notebook, SourceCell, notebook.source_cells, name, **text, **kind)


def _put(book: "Gradebook", notebook, kind: type, known: list, name: str, **values) -> None:
    """Set the values of the cell of that name, which is made where the notebook lacks it.

    nbgrader's own calls commit after every cell, which costs most of a second a chapter.
    """
    cell = next((one for one in known if one.name == name), None)
    if cell is None:
        book.db.add(kind(name=name, notebook=notebook, **values))
        return
    for key, value in values.items():
        setattr(cell, key, value)


def _add_lines(book: "Gradebook", notebook_id: str) -> None:
    """Give every submission a line for each graded cell, and each filled-in one, that it lacks."""
    from nbgrader.api import Comment, Grade, GradeCell, SolutionCell, SubmittedNotebook
    from sqlalchemy import and_, select

    for line, cell in [(Grade, GradeCell), (Comment, SolutionCell)]:
        missing = (
            select(SubmittedNotebook.id, cell.id)
            .join(cell, cell.notebook_id == SubmittedNotebook.notebook_id)
            .outerjoin(
                line, and_(line.cell_id == cell.id, line.notebook_id == SubmittedNotebook.id)
            )
            .where(SubmittedNotebook.notebook_id == notebook_id, line.id.is_(None))
        )
        book.db.add_all(
            line(notebook_id=sent, cell_id=one) for sent, one in book.db.execute(missing).all()
        )


def _forget_cells(book: "Gradebook", notebook, kept: set[str], slug: str) -> None:
    """Remove the cells that the chapter no longer has, with their scores."""
    for cell in [*notebook.grade_cells, *notebook.solution_cells]:
        if cell.name in kept:
            continue
        for grade in cell.grades or []:
            if grade.manual_score is not None:
                raise GradebookError(
                    f"{slug} no longer has the cell {cell.name}, but the gradebook holds scores "
                    "that a teacher gave for it; put the cell back, or keep a copy of the "
                    "gradebook and delete those scores in formgrader"
                )
        for line in [*(cell.grades or []), *(cell.comments or [])]:
            book.db.delete(line)
        book.db.delete(cell)
    for cell in notebook.source_cells:
        if cell.name not in kept:
            book.db.delete(cell)
    book.db.commit()
