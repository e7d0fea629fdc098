"""Write what the grader found where nbgrader looks for it: its gradebook, its folder autograded/.

Scores are written in one transaction a submission; writing the same twice changes nothing. Manual
scores and comments belong to the teacher and are never touched.
"""

import contextlib
import datetime
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

from autograde.autograded import Template
from autograde.build import instructor_notebook, student_notebook
from autograde.course_rules import gradebook_url
from autograde.environment import programs_on_path
from autograde.extract import Extracted
from autograde.gradebook_cells import GradebookError, save_cells
from autograde.plan import ClassFolder, write
from autograde.run import Verdict
from autograde.source import Chapter

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

COURSE_ID = "plainformer"


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
    """Open the class's gradebook, gradebook.db or what course.toml names; a new one is made whole.

    Raises GradebookError when it cannot be opened, with what to look at.
    """
    from nbgrader.api import Gradebook
    from sqlalchemy import URL
    from sqlalchemy.exc import OperationalError, SAWarning

    folder.root.mkdir(parents=True, exist_ok=True)
    url = gradebook_url(folder)
    if url is None:
        _make_new(folder)
        url = URL.create("sqlite", database=str(folder.gradebook))
    with warnings.catch_warnings(), programs_on_path():
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, about its order of additions
        try:
            book = Gradebook(url, COURSE_ID)
        except (OperationalError, ImportError) as error:
            raise GradebookError(_not_opened(folder, url, error)) from error
        with book:
            yield book


def _make_new(folder: ClassFolder) -> None:
    """An empty gradebook.db where there is none: made beside it and renamed, so never half-made."""
    from nbgrader.api import Gradebook
    from sqlalchemy import URL

    if folder.gradebook.exists():
        return
    descriptor, scratch = tempfile.mkstemp(dir=folder.root, prefix=".new-", suffix=".db")
    os.close(descriptor)
    try:
        with programs_on_path():
            Gradebook(URL.create("sqlite", database=scratch), COURSE_ID).close()
        os.chmod(scratch, 0o644)
        os.replace(scratch, folder.gradebook)
    finally:
        Path(scratch).unlink(missing_ok=True)


def _not_opened(folder: ClassFolder, url, error: Exception) -> str:
    if isinstance(error, ImportError):
        return (
            f"the gradebook {url} needs the extra `cluster` ({error}); "
            "python -m pip install -c requirements.lock -e '.[cluster]'"
        )
    said = f"the gradebook {url} cannot be opened: {error.args[0].strip()}"
    if gradebook_url(folder) is None:
        return f"{said}; see that you may write there, and that the disk has room"
    return (
        f"{said}. A database is made with `createdb NAME`; a password is taken from ~/.pgpass or "
        f"PGPASSWORD; the address stands in {folder.root / 'course.toml'}"
    )


def prepare(folder: ClassFolder, chapter: Chapter) -> None:
    """Put the chapter into source/, release/ and the gradebook, where it is new or has changed."""
    with recorder(folder, chapter):
        pass


def _prepare_files(folder: ClassFolder, chapter: Chapter, instructor: NotebookNode) -> None:
    name = f"{chapter.slug}.ipynb"
    release = folder.root / "release" / chapter.slug / name
    changed = write(folder.root / "source" / chapter.slug / name, nbformat.writes(instructor))
    if changed or not release.exists():
        with programs_on_path():
            write(release, nbformat.writes(student_notebook(chapter)))


# One submission


@contextlib.contextmanager
def recorder(folder: ClassFolder, chapter: Chapter) -> Iterator["Recorder"]:
    """The one writer of a run, with the gradebook open and the chapter in it."""
    instructor = instructor_notebook(chapter)
    _prepare_files(folder, chapter, instructor)
    with gradebook(folder) as book:
        save_cells(book, chapter.slug, instructor)
        yield Recorder(folder, chapter, book)


class Recorder:
    """Writes graded submissions of one chapter: one gradebook for all, a transaction for each."""

    def __init__(self, folder: ClassFolder, chapter: Chapter, book: "Gradebook"):
        self._folder, self.slug, self._db = folder, chapter.slug, book.db
        self._template: Template | None = None
        self._chapter = chapter
        notebook = book.find_notebook(chapter.slug, chapter.slug)
        self._notebook, self._assignment = notebook.id, notebook.assignment_id
        self._graded = {cell.id: cell.name for cell in notebook.grade_cells}
        self._filled_in = {cell.id: cell.name for cell in notebook.solution_cells}

    def record(
        self,
        student: str,
        found: Extracted,
        verdicts: Mapping[str, Verdict],
        *,
        submitted: datetime.datetime,
        new: bool,
    ) -> None:
        """Write one graded submission: the autograded notebook first, then its scores.

        `new` says that the learner sent other work than last time, so that what a teacher has
        marked by hand needs another look; the manual scores themselves stay. Raises GradebookError
        when the gradebook takes nothing, for this submission or any other.
        """
        from sqlalchemy.exc import OperationalError, SQLAlchemyError

        self._template = self._template or Template(self._chapter)
        notebook = self._template.filled(found, verdicts)
        write(self._folder.autograded(student, self.slug), notebook)
        try:
            sent = self._sent(student, submitted)
            self._save_grades(sent, found, verdicts, new=new)
            self._save_comments(sent, {*found.answers, *found.written})
            self._db.commit()
        except OperationalError as error:
            with contextlib.suppress(SQLAlchemyError):  # the connection may be what is lost
                self._db.rollback()
            raise GradebookError(
                f"{gradebook_url(self._folder) or self._folder.gradebook} cannot be written: "
                f"{error.args[0]}; close what else has it open (formgrader, a database browser), "
                "see that the disk has room and a server runs, and run this again: what is graded "
                "stays graded"
            ) from error
        except BaseException:  # this submission's own trouble, or a Ctrl-C
            self._db.rollback()
            raise
        self._db.expunge_all()

    def _sent(self, student: str, submitted: datetime.datetime) -> str:
        """The id of the student's notebook in the gradebook, which is made where it is new."""
        from nbgrader.api import Student, SubmittedAssignment, SubmittedNotebook
        from sqlalchemy import select

        if self._db.get(Student, student) is None:
            self._db.add(Student(id=student))
            self._db.flush()
        where = {"assignment_id": self._assignment, "student_id": student}
        whole = self._db.scalar(select(SubmittedAssignment).filter_by(**where))
        if whole is None:
            self._db.add(whole := SubmittedAssignment(**where))
        moment = submitted.astimezone(datetime.UTC)
        whole.timestamp = moment.replace(tzinfo=None, microsecond=0)
        self._db.flush()
        where = {"assignment_id": whole.id, "notebook_id": self._notebook}
        sent = self._db.scalar(select(SubmittedNotebook).filter_by(**where))
        if sent is None:
            self._db.add(sent := SubmittedNotebook(**where))
            self._db.flush()
        return sent.id

    def _save_grades(
        self, sent: str, found: Extracted, verdicts: Mapping[str, Verdict], *, new: bool
    ) -> None:
        from nbgrader.api import Grade

        for name, grade in self._lines(Grade, sent, self._graded):
            if name in verdicts:
                grade.auto_score = verdicts[name].score
            else:  # a written answer: a blank one is worth nothing, any other is for a person
                grade.auto_score = None if name in found.written else 0.0
            if grade.manual_score is None:
                grade.needs_manual_grade = grade.auto_score is None
            elif new:
                grade.needs_manual_grade = True

    def _save_comments(self, sent: str, answered: set[str]) -> None:
        from nbgrader.api import Comment

        for name, comment in self._lines(Comment, sent, self._filled_in):
            comment.auto_comment = None if name in answered else "No response."

    def _lines(self, kind: type, sent: str, cells: Mapping[str, str]) -> list[tuple]:
        """(name of the cell, its line for this notebook), made where it is missing."""
        from sqlalchemy import select

        known = {
            line.cell_id: line
            for line in self._db.scalars(select(kind).where(kind.notebook_id == sent))
        }
        missing = [kind(notebook_id=sent, cell_id=cell) for cell in cells if cell not in known]
        self._db.add_all(missing)
        known |= {line.cell_id: line for line in missing}
        return [(name, known[cell]) for cell, name in cells.items()]


# Reading back


def graded_students(folder: ClassFolder, slug: str) -> set[str]:
    """Everybody for whom the gradebook holds this chapter."""
    return set(scores(folder, slug, lines=False))


def scores(folder: ClassFolder, slug: str, *, lines: bool = True) -> dict[str, dict[str, Score]]:
    """What the gradebook says of one chapter: student -> test or written cell -> score."""
    if not folder.gradebook.exists() and gradebook_url(folder) is None:
        return {}
    from nbgrader.api import (
        Assignment,
        BaseCell,
        Comment,
        Grade,
        GradeCell,
        SubmittedAssignment,
        SubmittedNotebook,
    )
    from sqlalchemy import select

    def of_chapter(*columns):
        return (
            select(SubmittedAssignment.student_id, *columns)
            .select_from(SubmittedAssignment)
            .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
            .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .where(Assignment.name == slug)
        )

    with gradebook(folder) as book:
        found = {student: {} for (student,) in book.db.execute(of_chapter())}
        if not lines:
            return found
        said = {
            (student, cell): comment
            for student, cell, comment in book.db.execute(
                of_chapter(BaseCell.name, Comment.manual_comment)
                .join(Comment, Comment.notebook_id == SubmittedNotebook.id)
                .join(BaseCell, BaseCell.id == Comment.cell_id)
            )
        }
        for student, cell, *score in book.db.execute(
            of_chapter(
                GradeCell.name,
                Grade.score,
                GradeCell.max_score,
                Grade.auto_score,
                Grade.manual_score,
                Grade.needs_manual_grade,
            )
            .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
            .join(GradeCell, GradeCell.id == Grade.cell_id)
        ):
            found[student][cell] = Score(*score, comment=said.get((student, cell)))
    return found


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
