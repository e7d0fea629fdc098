"""Whose a file in a download of the class is, by what Canvas, Moodle or a person calls it.

Canvas `doejane_LATE_12345_67890_02-attention-1.ipynb`; Moodle
`Jane Doe_123456_assignsubmission_file_/02-attention.ipynb`; by hand `jane/02-attention.ipynb`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from autograde.archive import Member

CANVAS = re.compile(
    r"(?P<name>.+?)(?P<late>_LATE)?_(?P<number>\d+)_(?P<upload>\d+)_(?P<file>.+)", re.IGNORECASE
)
MOODLE = re.compile(
    r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*))?"
)
AGAIN = re.compile(r"-(\d+)$")  # what Canvas adds to the name of a file that is sent again


@dataclass(frozen=True, slots=True)
class Handed:
    """One file that a student handed in, as the download tells it."""

    member: Member
    name: str  # the student's, as written there
    number: str  # what tells two students of one name apart; empty when done by hand
    file: str  # what the student called it
    order: tuple[int, ...]  # the newest has the largest
    late: bool = False


def handed(member: Member, slugs: Iterable[str]) -> Handed | None:
    """Who handed this in, or None when nothing says so."""
    moment = int("".join(f"{part:02d}" for part in member.info.date_time))
    for part in member.parts:
        if found := MOODLE.fullmatch(part):
            file = found["file"] or member.name
            return Handed(member, found["name"], found["number"], file, (0, moment, 0))
    if found := CANVAS.fullmatch(member.name):
        again = AGAIN.search(found["file"].rpartition(".")[0])
        order = (int(found["upload"]), moment, int(again[1]) if again else 0)
        late = found["late"] is not None
        return Handed(member, found["name"], found["number"], found["file"], order, late)
    above = [part for part in member.parts[:-1] if part not in slugs]
    return Handed(member, above[-1], "", member.name, (0, moment, 0)) if above else None


def apart(these: list[Handed]) -> list[Handed]:
    """With the number behind the name where one download has two students of the same name."""
    numbers = defaultdict(set)
    for one in these:
        numbers[one.name].add(one.number)
    return [
        replace(one, name=f"{one.name}_{one.number}") if len(numbers[one.name]) > 1 else one
        for one in these
    ]
