"""Write what the grader found where nbgrader looks for it: its gradebook, its folder autograded/.

Scores are written in one transaction a submission; writing the same twice changes nothing. Manual
scores and comments belong to the teacher and are never touched.
"""

import contextlib
import datetime
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from nbformat import NotebookNode

from autograde.autograded import autograded_notebook
from autograde.build import instructor_notebook, student_notebook
from autograde.environment import programs_on_path
from autograde.extract import Extracted
from autograde.plan import ClassFolder, write
from autograde.run import Verdict
from autograde.source import Chapter
from autograde.written import released_text

if TYPE_CHECKING:
    from nbgrader.api import Gradebook, SubmittedNotebook

COURSE_ID = "plainformer"


class GradebookError(ValueError):
    """The gradebook cannot take the scores; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Score:
    """One line of the gradebook: a test or a written answer of one student."""

    points: float
    out_of: float
    auto: float | None
    manual: float | None
    needs_manual_grade: bool
    comment: str | None = None


# The gradebook


@contextlib.contextmanager
def gradebook(folder: ClassFolder) -> Iterator["Gradebook"]:
    """Open the class's gradebook. A new one is made beside it and renamed, so never half-made."""
    from nbgrader.api import Gradebook
    from sqlalchemy import URL
    from sqlalchemy.exc import SAWarning

    folder.root.mkdir(parents=True, exist_ok=True)
    if not folder.gradebook.exists():
        descriptor, scratch = tempfile.mkstemp(dir=folder.root, prefix=".new-", suffix=".db")
        os.close(descriptor)
        try:
            with programs_on_path():
                Gradebook(URL.create("sqlite", database=scratch), COURSE_ID).close()
            os.chmod(scratch, 0o644)
            os.replace(scratch, folder.gradebook)
        finally:
            Path(scratch).unlink(missing_ok=True)
    url = URL.create("sqlite", database=str(folder.gradebook))
    with warnings.catch_warnings(), programs_on_path(), Gradebook(url, COURSE_ID) as book:
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, about its order of additions
        yield book


def prepare(folder: ClassFolder, chapter: Chapter) -> None:
    """Put the chapter into source/, release/ and the gradebook, where it is new or has changed."""
    instructor = instructor_notebook(chapter)
    name = f"{chapter.slug}.ipynb"
    release = folder.root / "release" / chapter.slug / name
    changed = write(folder.root / "source" / chapter.slug / name, nbformat.writes(instructor))
    if changed or not release.exists():
        with programs_on_path():
            write(release, nbformat.writes(student_notebook(chapter)))
    with gradebook(folder) as book:
        _save_cells(book, chapter, instructor)


def _save_cells(book: "Gradebook", chapter: Chapter, instructor: NotebookNode) -> None:
    """Tell the gradebook which cells there are; submissions that it holds get the new ones.

    nbgrader refuses to change an assignment once somebody has submitted. A course that grows during
    the term needs it, so we do it here, unless a teacher's own scores would be lost.
    """
    from nbgrader.api import Comment, Grade
    from nbgrader.utils import compute_checksum, is_grade, is_locked, is_solution

    slug = chapter.slug
    book.update_or_create_assignment(slug)
    notebook = book.update_or_create_notebook(
        slug, slug, kernelspec=json.dumps(instructor.metadata.kernelspec)
    )
    cells = [cell for cell in instructor.cells if "nbgrader" in cell.metadata]
    _forget_cells(book, notebook, {cell.metadata.nbgrader.grade_id for cell in cells}, slug)
    for cell in cells:
        ident = cell.metadata.nbgrader.grade_id
        graded, solution = is_grade(cell), is_solution(cell)
        cell.source = released_text(cell) if solution else cell.source
        if graded:
            made = book.update_or_create_grade_cell(
                ident,
                slug,
                slug,
                max_score=float(cell.metadata.nbgrader.points),
                cell_type=cell.cell_type,
            )
            for sent in notebook.submissions:
                if made.id not in {grade.cell_id for grade in sent.grades}:
                    book.db.add(Grade(cell_id=made.id, notebook=sent))
        if solution:
            made = book.update_or_create_solution_cell(ident, slug, slug)
            for sent in notebook.submissions:
                if made.id not in {comment.cell_id for comment in sent.comments}:
                    book.db.add(Comment(cell_id=made.id, notebook=sent))
        book.update_or_create_source_cell(
            ident,
            slug,
            slug,
            cell_type=cell.cell_type,
            locked=is_locked(cell),
            source=cell.source,
            checksum=compute_checksum(cell),
        )
    book.db.commit()


def _forget_cells(book: "Gradebook", notebook, kept: set[str], slug: str) -> None:
    """Remove the cells that the chapter no longer has, with their scores."""
    for cell in [*notebook.grade_cells, *notebook.solution_cells]:
        if cell.name in kept:
            continue
        for grade in cell.grades or []:
            if grade.manual_score is not None:
                raise GradebookError(
                    f"{slug} no longer has the cell {cell.name}, but the gradebook holds scores "
                    "that a teacher gave for it; put the cell back, or keep a copy of gradebook.db "
                    "and delete those scores in formgrader"
                )
        for line in [*(cell.grades or []), *(cell.comments or [])]:
            book.db.delete(line)
        book.db.delete(cell)
    for cell in notebook.source_cells:
        if cell.name not in kept:
            book.db.delete(cell)
    book.db.commit()


# One submission


def record(
    folder: ClassFolder,
    chapter: Chapter,
    student: str,
    found: Extracted,
    verdicts: Mapping[str, Verdict],
    *,
    submitted: datetime.datetime,
    new: bool,
) -> None:
    """Write one graded submission: the autograded notebook first, then its scores.

    `new` says that the learner sent other work than last time, so that what a teacher has marked
    by hand needs another look; the manual scores themselves stay.
    """
    notebook = autograded_notebook(chapter, found, verdicts)
    write(folder.autograded(student, chapter.slug), nbformat.writes(notebook))
    with gradebook(folder) as book:
        book.update_or_create_student(student)
        moment = submitted.astimezone(datetime.UTC).replace(tzinfo=None, microsecond=0)
        book.update_or_create_submission(chapter.slug, student, timestamp=str(moment))
        sent = book.find_submission_notebook(chapter.slug, chapter.slug, student)
        _save_scores(sent, chapter, found, verdicts, new=new)
        book.db.commit()


def _save_scores(
    sent: "SubmittedNotebook",
    chapter: Chapter,
    found: Extracted,
    verdicts: Mapping[str, Verdict],
    *,
    new: bool,
) -> None:
    for grade in sent.grades:
        if grade.name in verdicts:
            grade.auto_score = verdicts[grade.name].score
        else:  # a written answer: a blank one is worth nothing, any other is for a person to read
            grade.auto_score = None if grade.name in found.written else 0.0
        if grade.manual_score is None:
            grade.needs_manual_grade = grade.auto_score is None
        elif new:
            grade.needs_manual_grade = True
    answered = {*found.answers, *found.written}
    for comment in sent.comments:
        comment.auto_comment = None if comment.name in answered else "No response."


# Reading back


def scores(folder: ClassFolder, slug: str) -> dict[str, dict[str, Score]]:
    """What the gradebook says of one chapter: student -> test or written cell -> score."""
    if not folder.gradebook.exists():
        return {}
    with gradebook(folder) as book:
        if slug not in {assignment.name for assignment in book.assignments}:
            return {}
        return {sent.student.id: _scores(sent) for sent in book.notebook_submissions(slug, slug)}


def _scores(sent: "SubmittedNotebook") -> dict[str, Score]:
    comments = {comment.name: comment.manual_comment for comment in sent.comments}
    return {
        grade.name: Score(
            points=float(grade.score),
            out_of=float(grade.max_score),
            auto=grade.auto_score,
            manual=grade.manual_score,
            needs_manual_grade=bool(grade.needs_manual_grade),
            comment=comments.get(grade.name),
        )
        for grade in sent.grades
    }


def submitted_at(path: Path) -> tuple[datetime.datetime, list[str]]:
    """When a notebook came in: what nbgrader's timestamp.txt says, else the time of the file."""
    from nbgrader.utils import parse_utc

    fallback = datetime.datetime.fromtimestamp(path.stat().st_mtime, tz=datetime.UTC)
    stamp = path.with_name("timestamp.txt")
    if not stamp.is_file() or stamp.is_symlink():
        return fallback, []
    text = stamp.read_text(encoding="utf-8", errors="replace").strip()
    text = re.sub(r" ([+-]\d)", r"\1", text)  # nbgrader would take " +0200" for 200 seconds
    try:
        return parse_utc(text).replace(tzinfo=datetime.UTC), []
    except (ValueError, OverflowError, AttributeError):
        return fallback, [
            f"timestamp.txt says {text[:40]!r}, which is no time; the time of the file was taken"
        ]
