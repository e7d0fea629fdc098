"""Fill in the grading worksheet of one Moodle assignment, to be uploaded there again.

Source: the Moodle program, github.com/moodle/moodle, mod/assign/gradingtable.php and
mod/assign/feedback/offline (importgradeslib, locallib). From there: a row is known by its
Identifier ("Participant 123"), the points stand in Grade, and Last modified (grade) must be there
too, unchanged; a grade above the maximum, or locked, is passed over; where there is a Scale instead
of a maximum, numbers mean nothing. The words are in the language of whoever downloads it.
"""

import re
from collections.abc import Sequence
from pathlib import Path

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

NEEDED = ("Identifier", "Grade", "Last modified (grade)")
OTHERS = ("Username", "ID number")
MAXIMUM = ("Maximum Grade", "Maximum grade")


def fill_moodle(path: Path, lines: Sequence[Line]) -> Filled:
    """The worksheet with the points due. Raises BadSheet where it does not fit."""
    sheet = read_sheet(path)
    missing = [name for name in NEEDED if sheet.column(name) is None]
    if missing:
        raise BadSheet(
            f"{path} has no column {' or '.join(missing)}, so it is no grading worksheet; in "
            "Moodle, set the language to English and download the worksheet of the assignment"
        )
    if sheet.column("Scale") is not None:
        raise BadSheet(f"{path}: the assignment has a scale; set its grade to points in Moodle")
    rows = {row: _known(sheet, row) for row, cells in enumerate(sheet.rows) if row and cells}
    of_one = {line.student: line for line in lines}
    whose = {student: _student(student, rows) for student in of_one}
    places, why = match(whose, rows)
    done = fill(sheet, sheet.column("Grade"), of_one, places)
    done.missing |= bool(why)
    done.told += _passed_over(sheet, of_one, places)
    done.told += [f"not in the file: {student}: {reason}" for student, reason in why.items()]
    alone = [row for row in rows if row not in places.values()]
    done.told += [f"in the file, but handed in nothing: {_called(sheet, row)}" for row in alone]
    done.data = sheet.data()
    return done


def _known(sheet: Sheet, row: int) -> Known:
    email = sheet.cell(row, sheet.column("Email address", "Email"))
    others = [sheet.cell(row, sheet.column(name)) for name in OTHERS]
    digits = re.search(r"\d+$", sheet.cell(row, sheet.column("Identifier")))
    name = squeezed(sheet.cell(row, sheet.column("Full name")))
    return Known(
        digits[0] if digits else "",
        frozenset(filter(None, [email, *others])),
        logins(email),
        frozenset(filter(None, [name])),
    )


def _student(student: str, rows: dict[int, Known]) -> Known:
    """`Jane Doe_123` is Participant 123, if that one is a Jane Doe; so downloads tell two apart."""
    name, _, end = student.rpartition("_")
    here = squeezed(name)
    sure = any(row.number == end and here in row.names for row in rows.values())
    return known_student(student, end if here and sure else "")


def _called(sheet: Sheet, row: int) -> str:
    name = sheet.cell(row, sheet.column("Full name"))
    return name or sheet.cell(row, sheet.column("Identifier"))


def _passed_over(sheet: Sheet, lines: dict[str, Line], places: dict[str, int]) -> list[str]:
    """Whose grade is in the file, though Moodle will not take it."""
    told = []
    for student, row in places.items():
        most, due = sheet.cell(row, sheet.column(*MAXIMUM)).replace(",", "."), lines[student].due
        if due is None:
            continue
        if re.fullmatch(r"\d+(\.\d+)?", most) and due > float(most):
            told.append(f"{student} has {number(due)} of at most {most}: Moodle passes that over")
        if sheet.cell(row, sheet.column("Grade can be changed")) == "No":
            told.append(f"{student}: the grade is locked in Moodle, which passes ours over")
    return told
