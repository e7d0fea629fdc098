"""Who has how many points in which chapter, and how many of them are due after the class's rules.

Everything is worked out anew from the gradebook, the records and course.toml. The raw scores in
the gradebook are only read.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from autograde.course_rules import Rules
from autograde.lateness import Outcome, Work, settle
from autograde.plan import ClassFolder
from autograde.record import Score, scores
from autograde.source import Chapter

NOT_YET = "not graded yet; run `python -m autograde grade`"


@dataclass(frozen=True, slots=True)
class Line:
    """One student in one chapter. What could not be graded has no points, rather than zero."""

    student: str
    chapter: Chapter
    record: dict = field(default_factory=dict)  # what the grader found, or empty
    scores: dict[str, Score] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()  # tests of tiers that do not count
    outcome: Outcome | None = None

    @property
    def points(self) -> float | None:
        return sum(one.points for one in self.scores.values()) if self.scores else None

    @property
    def out_of(self) -> float | None:
        return sum(one.out_of for one in self.scores.values()) if self.scores else None

    @property
    def counting(self) -> list[Score]:
        return [score for test, score in self.scores.items() if test not in self.left_out]

    @property
    def due(self) -> float | None:
        """Points after lateness, of the tiers that count."""
        return self.outcome.points if self.outcome and not self.reason else None

    @property
    def due_out_of(self) -> float:
        return sum(score.out_of for score in self.counting)

    @property
    def to_be_read(self) -> int:
        return sum(score.needs_manual_grade for score in self.scores.values())

    @property
    def reason(self) -> str:
        """Why this is not graded, or nothing."""
        return self.record.get("reason") or ("" if self.scores else NOT_YET)


def lines_of(folder: ClassFolder, chapters: Sequence[Chapter], rules: Rules) -> list[Line]:
    """A line for each student who handed in, or whom the gradebook knows, chapter by chapter.

    `chapters` are all that the class has, since slip days are for the whole course.
    """
    lines = [line for chapter in chapters for line in _of_chapter(folder, chapter, rules)]
    works = {}
    for line in lines:
        if moment := _moment(line):
            points = sum(score.points for score in line.counting)
            dates = rules.dates(line.student, line.chapter.slug)
            work = Work(submitted=moment, points=points, dates=dates)
            works.setdefault(line.student, {})[line.chapter.slug] = work
    settled = {student: settle(rules.policy, of_one) for student, of_one in works.items()}
    return [_with_outcome(line, settled.get(line.student, {})) for line in lines]


def _of_chapter(folder: ClassFolder, chapter: Chapter, rules: Rules) -> list[Line]:
    in_book = scores(folder, chapter.slug)
    left_out = frozenset(rules.left_out(chapter))
    return [
        Line(
            student,
            chapter,
            folder.read_record(student, chapter.slug) or {},
            in_book.get(student, {}),
            left_out,
        )
        for student in sorted({*in_book, *folder.students(chapter.slug)})
    ]


def _moment(line: Line) -> datetime.datetime | None:
    """When it came in, if it is graded and that is known."""
    try:
        moment = datetime.datetime.fromisoformat(line.record["submitted"])
    except (KeyError, TypeError, ValueError):
        return None
    return moment if moment.tzinfo and line.scores else None


def _with_outcome(line: Line, settled: dict[str, Outcome]) -> Line:
    outcome = settled.get(line.chapter.slug)
    if outcome is None and line.scores and not line.reason:
        points = sum(score.points for score in line.counting)
        why = "nothing says when this came in, so it is taken as in time"
        outcome = Outcome(0, 0, Fraction(0), points, why)
    return Line(line.student, line.chapter, line.record, line.scores, line.left_out, outcome)
