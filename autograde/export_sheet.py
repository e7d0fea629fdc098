"""A CSV file of another program that gets numbers filled in, and whose row is which student's.

Every cell but those that are filled stays as it was, formula-like text too: the other program wrote
it and has to know it again. What we put in is numbers alone, so nothing of ours can run.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograde.chapters import UsageError
from autograde.export_points import Line
from autograde.ids import original

BOM = "\ufeff"


class BadSheet(UsageError):
    """A file that was to be filled in is not what it should be; the message says what to do."""


@dataclass(slots=True)
class Sheet:
    """A CSV file as it was found: delimiter, byte order mark and ends of lines are kept."""

    path: Path
    rows: list[list[str]]
    delimiter: str
    newline: str
    bom: bool

    @property
    def header(self) -> list[str]:
        return self.rows[0]

    def column(self, *names: str) -> int | None:
        """The first column with one of these names; of two with one name, neither is sure."""
        for name in names:
            found = [at for at, head in enumerate(self.header) if head.strip() == name]
            if len(found) > 1:
                raise BadSheet(f"{self.path} has {len(found)} columns {name!r}; delete the wrong")
            if found:
                return found[0]
        return None

    def cell(self, row: int, column: int | None) -> str:
        line = self.rows[row]
        return line[column].strip() if column is not None and column < len(line) else ""

    def data(self) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator=self.newline).writerows(self.rows)
        return ((BOM if self.bom else "") + text.getvalue()).encode()


EXPORT_AGAIN = "export it again, and do not save it in Excel"


def read_sheet(path: Path, way_out: str = EXPORT_AGAIN) -> Sheet:
    """Read a CSV file in UTF-8. Raises BadSheet; `way_out` helps with one that is not in UTF-8."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise BadSheet(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadSheet(f"{path} is not UTF-8; {way_out}") from None
    bom, text = text.startswith(BOM), text.removeprefix(BOM)
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = list(reader)
    except csv.Error as error:
        raise BadSheet(f"{path} is no CSV file: {error}; export it again") from None
    if not rows or len(rows[0]) < 2:
        raise BadSheet(f"{path} has no line of column names; export it again")
    return Sheet(path, rows, delimiter, "\r\n" if "\r\n" in text else "\n", bom)


@dataclass(frozen=True, slots=True)
class Known:
    """What a row or a student is known by: a number from a download, sure ids, weaker names."""

    number: str = ""
    ids: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def keys(self, way: str) -> frozenset[str]:
        value = getattr(self, way)
        return value if way != "number" else frozenset(filter(None, [value]))


def match(students: Mapping[str, Known], rows: Mapping[int, Known]) -> tuple[dict, dict[str, str]]:
    """Student -> row, and student -> why there is none.

    The surest comes first: the number that a download tells, then an id letter by letter, then a
    login in any case or without what follows its @, then the name. Each must lead to one row, and
    one student to it; whose number is known is looked for by nothing else. Nobody is guessed at.
    """
    found: dict[str, int] = {}
    why: dict[str, str] = {}
    for way in ("number", "ids", "logins", "names"):
        rows_of: dict[str, set[int]] = {}
        for row, known in rows.items():
            for key in known.keys(way):
                rows_of.setdefault(key, set()).add(row)
        wanted: dict[int, list[str]] = {}
        taken = set(found.values())
        for student, known in students.items():
            if student in found or student in why or (known.number and way != "number"):
                continue
            meant = set().union(*(rows_of.get(key, ()) for key in known.keys(way)))
            if len(meant) > 1:  # even if all but one are taken: that would be a guess
                why[student] = f"{len(meant)} rows could be this one"
            elif meant and not meant & taken:
                wanted.setdefault(min(meant), []).append(student)
        for row, these in wanted.items():
            if len(these) == 1:
                found[these[0]] = row
            else:
                why |= dict.fromkeys(these, f"one row could be {' or '.join(these)}")
    missing = set(students) - set(found) - set(why)
    return found, why | dict.fromkeys(sorted(missing), "no row is this one")


def known_student(student: str, number: str = "") -> Known:
    """What a student's id says; see `autograde.ids`."""
    name = original(student)
    ids = frozenset({student, name})
    return Known(number, ids, logins(*ids), frozenset(filter(None, {squeezed(name)})))


def logins(*ids: str) -> frozenset[str]:
    """Logins in lower case, with and without what follows the @."""
    lower = [one.strip().casefold() for one in ids]
    return frozenset(filter(None, [*lower, *(one.partition("@")[0] for one in lower)]))


def squeezed(name: str) -> str:
    """A name's letters and digits in lower case: "Doe, Jane" as the `doejane` of a download."""
    plain = unicodedata.normalize("NFC", name).casefold()
    return re.sub(r"[\W_]+", "", plain)


@dataclass(slots=True)
class Filled:
    """What became of a file: its new bytes, whose grades are in it, what a teacher should know."""

    data: bytes = b""
    filled: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    missing: bool = False  # somebody has points and no place for them


def fill(
    sheet: Sheet, column: int, lines: Mapping[str, Line], rows: Mapping[str, int], keep=()
) -> Filled:
    """Write the points due into one column; a cell that says one of `keep` stays."""
    done = Filled()
    for student, row in rows.items():
        line, before = lines[student], sheet.cell(row, column)
        if line.due is None:
            done.told.append(f"left as it was: {student}: {line.reason}")
        elif before.upper() in keep:
            done.missing = True
            done.told.append(f"left as it was: {student}: the file says {before}")
        else:
            cells = sheet.rows[row]
            cells += [""] * (column + 1 - len(cells))
            cells[column] = number(line.due)
            done.filled.append(student)
    if unread := sum(lines[student].to_be_read > 0 for student in done.filled):
        done.told.append(f"{unread} of these with answers that a person has yet to read")
    return done


def number(points: float) -> str:
    """At most two places after the point, as these programs show them."""
    return f"{points:.2f}".rstrip("0").rstrip(".")
