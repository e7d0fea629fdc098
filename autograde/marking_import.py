"""Take over the marks of a sheet that came back: all of them or none, and none over another's."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from autograde.chapters import UsageError
from autograde.comment_bank import comment_bank
from autograde.export_sheet import BadSheet
from autograde.gradebook_cells import GradebookError
from autograde.lock import alone
from autograde.marking_sheet import Answer, Mark, answers, lines, question, read_marks, rubric
from autograde.plan import ClassFolder
from autograde.record import gradebook
from autograde.second_marks import save_second, second_marks
from autograde.source import Chapter
from autograde.written import plain

BOOK = "the gradebook"
NONE = Mark(None)


def marks_before(
    folder: ClassFolder, slug: str, found: Iterable[Answer], marker: str = ""
) -> dict[str, Mark]:
    """The marks that these very texts have: in the gradebook, or of a second marker."""
    if marker:
        return second_marks(folder, slug, found).get(marker, {})
    return {
        one.id: Mark(one.score.manual, one.score.comment or "")
        for one in found
        if one.marked or (one.score.manual is None and one.score.comment)
    }


def import_sheet(
    folder: ClassFolder, chapter: Chapter, path: Path, marker: str = "", *, replace: bool = False
) -> dict:
    """Take over the marks of a sheet, all of them or none. Raises BadSheet with all that is wrong.

    The marks are the class's own unless the sheet, or `marker`, names a second marker.
    """
    said = lines(path)
    marker = _marker(path, said, marker)
    with alone(folder):
        known = {answer.id: answer for answer in answers(folder, chapter)}
        before = marks_before(folder, chapter.slug, known.values(), marker)
        banks = {
            cell.id: comment_bank(folder, cell.id, rubric(question(chapter, cell)))
            for cell in chapter.written
        }
        marks, wrong = read_marks(said, known, banks, before)
        if not replace:
            wrong += _differing(marks, before)
        if wrong:
            raise BadSheet(
                f"nothing was taken from {path}; mend these lines, or empty their points:\n  "
                + "\n  ".join(wrong)
            )
        new = {one: mark for one, mark in marks.items() if mark != before.get(one)}
        if marker:
            save_second(folder, chapter.slug, marker, marks, known)
        else:
            _save_first(folder, chapter.slug, [(known[one], mark) for one, mark in new.items()])
    return {
        "marker": marker or BOOK,
        "marks": len(marks),
        "new": len(new),
        "without_points": [
            one["answer"]
            for one in said
            if not one["points"]
            and plain(one["comment"]) not in ("", plain(before.get(one["answer"], NONE).comment))
        ],
        "to_be_marked": sum(not one["points"] for one in said),
    }


def _marker(path: Path, said: Sequence[Mapping], marker: str) -> str:
    """Whose marks a sheet holds: it says so itself, and the command line may say it too."""
    named = {line["marker"] for line in said} - {"", marker}
    if (marker and named) or len(named) > 1:
        raise UsageError(
            f"{path} is the sheet of {' and '.join(sorted(named))}, not of {marker or 'one marker'}"
        )
    return marker or "".join(named)


def _differing(marks: Mapping[str, Mark], before: Mapping[str, Mark]) -> list[str]:
    return [
        f"{ident}: has {_said(before[ident])}, the sheet says {_said(mark)}; "
        "--replace takes the sheet's"
        for ident, mark in marks.items()
        if ident in before and _other(mark, before[ident])
    ]


def _other(new: Mark, old: Mark) -> bool:
    return old.points not in (None, new.points) or old.comment not in ("", new.comment)


def _said(mark: Mark) -> str:
    points = "no points" if mark.points is None else f"{mark.points:g} points"
    return f"{points} and the comment {mark.comment!r}" if mark.comment else points


def _save_first(folder: ClassFolder, slug: str, marks: Sequence[tuple[Answer, Mark]]) -> None:
    """Into the gradebook, in one transaction. Extra credit given in formgrader stays."""
    from sqlalchemy.exc import OperationalError

    with gradebook(folder) as book:
        try:
            with book.db.no_autoflush:
                for answer, mark in marks:
                    where = (answer.exercise, slug, slug, answer.student)
                    grade = book.find_grade(*where)
                    grade.manual_score, grade.needs_manual_grade = mark.points, False
                    if mark.comment:
                        book.find_comment(*where).manual_comment = mark.comment
            book.db.commit()
        except OperationalError as error:
            book.db.rollback()
            raise GradebookError(
                f"{folder.gradebook} cannot be written: {error.args[0]}; close what else has it "
                "open (formgrader, a database browser), and import the sheet again"
            ) from error
