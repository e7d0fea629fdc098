"""Fill in a gradebook that was exported from Canvas, to be imported there again.

Source: the Canvas program, github.com/instructure/canvas-lms, lib/gradebook_exporter.rb and
lib/gradebook_importer.rb. From there: a first line with Student (or LastName, FirstName), ID,
perhaps SIS User ID, SIS Login ID, Section; then a column `Title (number)` for each assignment, and
sums that are read only. Perhaps a line that says "Manual Posting"; a line "Points Possible"; then
the students. A score `EX` is excused and `N/A` not assigned. Scores have two places.

The number in a download's file names is the ID of the student, so whoever came in by a download is
found by that alone.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from autograde.chapters import UsageError
from autograde.export_points import Line
from autograde.export_sheet import (
    BadSheet,
    Filled,
    Known,
    Sheet,
    fill,
    known_student,
    logins,
    match,
    number,
    read_sheet,
    squeezed,
)
from autograde.plan import ClassFolder
from autograde.source import Chapter

KEEP = ("EX", "N/A")
POSTING = re.compile(r"\s*(muted|manual posting.*)?\s*", re.IGNORECASE)
NUMBERED = re.compile(r"(?P<title>.*) \((?P<number>\d+)\)")
SIDE = ("SIS Login ID", "SIS User ID")


def fill_canvas(
    path: Path,
    folder: ClassFolder,
    chapters: Sequence[Chapter],
    lines: Sequence[Line],
    assignment: str | None = None,
) -> Filled:
    """The file with the points due of these chapters. Raises BadSheet where it does not fit."""
    sheet = read_sheet(path)
    students = _student_rows(sheet)
    columns = _columns(sheet, chapters, assignment)
    numbers = _numbers(folder)
    whose = {
        line.student: known_student(line.student, _number(line.student, numbers)) for line in lines
    }
    places, why = match(whose, students)
    without = [chapter.slug for chapter in chapters if chapter.slug not in columns]
    done = Filled(missing=bool(why or without))
    done.told += [f"no column for {slug}; name it and give --assignment" for slug in without]
    for slug, column in columns.items():
        of_one = {line.student: line for line in lines if line.chapter.slug == slug}
        here = {student: row for student, row in places.items() if student in of_one}
        part = fill(sheet, column, of_one, here, KEEP)
        done.filled += part.filled
        done.missing |= part.missing
        done.told += [*_sizes(sheet, column, of_one), *part.told]
    done.told += [f"not in the file: {student}: {reason}" for student, reason in why.items()]
    alone = [sheet.cell(row, 0) for row in students if row not in places.values()]
    done.told += [f"in the file, but handed in nothing: {name}" for name in alone]
    done.data = sheet.data()
    return done


def _student_rows(sheet: Sheet) -> dict[int, Known]:
    ident, split = sheet.column("ID"), sheet.header[0].strip() == "LastName"
    if ident is None or not (split or sheet.header[0].strip() == "Student"):
        raise BadSheet(
            f"{sheet.path} is no gradebook of Canvas: its columns begin {sheet.header[:4]}, not "
            "with Student, ID; in Canvas, Grades, Export gives it"
        )
    sure = [sheet.column(name) for name in SIDE]
    found = {}
    for row, cells in enumerate(sheet.rows[1:], start=1):
        if _is_of_students(cells):
            ids = [sheet.cell(row, ident), *(sheet.cell(row, column) for column in sure)]
            given = frozenset(filter(None, ids))
            names = _names(cells[:2] if split else cells[0].split(",", 1))
            found[row] = Known(ids[0], given, logins(ids[1]), names)
    return found


def _is_of_students(cells: list[str]) -> bool:
    posting = all(POSTING.fullmatch(cell) for cell in cells)
    return bool(cells) and not posting and "Points Possible" not in cells[0]


def _names(parts: Sequence[str]) -> frozenset[str]:
    """Of a last and a first name, both ways round."""
    whole = {squeezed("".join(parts)), squeezed("".join(reversed(parts)))}
    return frozenset(filter(None, whole))


def _numbers(folder: ClassFolder) -> dict[str, str]:
    """Student -> the number that Canvas knows them by, where a download told it."""
    try:
        text = (folder.root / "records" / "incoming.json").read_text(encoding="utf-8")
        return dict(json.loads(text)["students"])
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _number(student: str, numbers: dict[str, str]) -> str:
    """`doejane_12345` stands for the second of her name, whose number is at the end of her id."""
    name, _, end = student.rpartition("_")
    second = end if name in numbers and end.isdecimal() else ""
    return numbers.get(student, second)


def _columns(sheet: Sheet, chapters: Sequence[Chapter], assignment: str | None) -> dict[str, int]:
    """Chapter -> its column; an error when there is none for any of them, or two for one."""
    open_ones = _assignments(sheet)
    listed = "; ".join(sheet.header[column] for column in open_ones) or "none"
    found = {}
    for chapter in chapters:
        names = [assignment] if assignment else [chapter.slug, chapter.title]
        columns = [column for column, heads in open_ones.items() if heads & set(names)]
        if len(columns) > 1:
            raise UsageError(
                f"{sheet.path} has {len(columns)} columns for {chapter.slug}; give the number of "
                f"one with --assignment: {listed}"
            )
        if columns:
            found[chapter.slug] = columns[0]
    if not found:
        names = [assignment] if assignment else [one.slug for one in chapters]
        raise UsageError(
            f"{sheet.path} has no column {' or '.join(names)} that can be filled in; give one "
            f"with --assignment: {listed}"
        )
    return found


def _assignments(sheet: Sheet) -> dict[int, set[str]]:
    """Column -> what its assignment is called, of those that Canvas does not keep to itself."""
    section = sheet.column("Section")
    possible = _points_possible(sheet)
    found = {}
    for column in range(0 if section is None else section + 1, len(sheet.header)):
        titled = NUMBERED.fullmatch(sheet.header[column].strip())
        if titled and "read only" not in sheet.cell(possible, column).lower():
            found[column] = {titled[0], titled["title"].strip(), titled["number"]}
    return found


def _points_possible(sheet: Sheet) -> int:
    for row, cells in enumerate(sheet.rows[:5]):
        if cells and "Points Possible" in cells[0]:
            return row
    raise BadSheet(f"{sheet.path} has no line Points Possible; export it from Canvas again")


def _sizes(sheet: Sheet, column: int, lines: dict[str, Line]) -> list[str]:
    """A word where Canvas and the chapter do not agree about how many points there are."""
    theirs = sheet.cell(_points_possible(sheet), column)
    ours = {number(line.due_out_of) for line in lines.values() if line.scores}
    if not ours or (_is_number(theirs) and ours == {number(float(theirs))}):
        return []
    both = f"of {theirs or 'no'} points there, of {' or '.join(sorted(ours))} here"
    return [f"{sheet.header[column]}: {both}; nothing is scaled"]


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None
