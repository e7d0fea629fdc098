"""The table of grades: one line a student, one column an exercise."""

import json
from dataclasses import dataclass

from autograde.chapters import Course
from autograde.plan import ClassFolder, add_class_options, chosen_chapters, chosen_class
from autograde.record import Score, scores
from autograde.source import Chapter, load

BLANK, WAITING = "-", "?"


@dataclass(frozen=True, slots=True)
class Row:
    """One student's line. `marks` has points for each exercise, None where a person must read."""

    student: str
    marks: dict[str, float | None]
    blank: frozenset[str] = frozenset()  # exercises that were not attempted
    reason: str | None = None  # why the submission could not be graded
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        return sum(mark for mark in self.marks.values() if mark is not None)


@dataclass(frozen=True, slots=True)
class Table:
    """The grades of one chapter; `str()` is what the terminal shows."""

    slug: str
    title: str
    out_of: dict[str, float]  # exercise or written answer -> points
    rows: tuple[Row, ...]

    def as_json(self) -> dict:
        return {
            "chapter": self.slug,
            "out_of": self.out_of,
            "rows": [
                {
                    "student": row.student,
                    "points": row.points,
                    "marks": row.marks,
                    "reason": row.reason,
                    "notes": list(row.notes),
                }
                for row in self.rows
            ],
        }

    def __str__(self) -> str:
        idents = list(self.out_of)
        total = sum(self.out_of.values())
        width = max([7, *(len(row.student) for row in self.rows)])
        heads = [str(number) for number in range(1, len(idents) + 1)]
        lines = [
            f"{self.slug}: {self.title}, {total:g} points",
            "",
            f"{'student':<{width}}  " + "".join(f"{head:>5}" for head in heads) + "   points",
            f"{'':<{width}}  "
            + "".join(f"{'/' + format(self.out_of[ident], 'g'):>5}" for ident in idents),
        ]
        for row in self.rows:
            if row.reason:
                lines.append(f"{row.student:<{width}}  not graded: {row.reason}")
                continue
            cells = "".join(f"{self._cell(row, ident):>5}" for ident in idents)
            lines.append(f"{row.student:<{width}}  {cells}   {row.points:>4g} / {total:g}")
        short = [ident.partition("-")[2] for ident in idents]
        legend = [f"{head} {name}" for head, name in zip(heads, short, strict=True)]
        lines += ["", *_wrapped(legend, 96), "- not attempted   ? to be read by a person"]
        return "\n".join(lines)

    def _cell(self, row: Row, ident: str) -> str:
        mark = row.marks.get(ident)
        if ident in row.blank and not mark:
            return BLANK
        return WAITING if mark is None else f"{mark:g}"


def table(folder: ClassFolder, chapter: Chapter, student: str | None = None) -> Table:
    """What the gradebook and the records say of one chapter; nothing is graded here."""
    out_of = {one.id: float(one.points) for one in chapter.exercises.values()}
    out_of |= {cell.id: float(cell.header["points"]) for cell in chapter.written}
    in_book = scores(folder, chapter.slug)
    students = [s for s in folder.students(chapter.slug) if student in (None, s)]
    rows = [_row(folder, chapter, one, in_book.get(one, {})) for one in students]
    return Table(chapter.slug, chapter.title, out_of, tuple(row for row in rows if row))


def _row(
    folder: ClassFolder, chapter: Chapter, student: str, in_book: dict[str, Score]
) -> Row | None:
    record = folder.read_record(student, chapter.slug)
    if record is None:
        return Row(student, {}, reason="not graded yet; run `python -m autograde grade`")
    if not record["graded"]:
        return Row(student, {}, reason=record["reason"])
    marks: dict[str, float | None] = {}
    for exercise in chapter.exercises.values():
        marks[exercise.id] = sum(in_book[t.id].points for t in exercise.tests if t.id in in_book)
    for cell in chapter.written:
        score = in_book.get(cell.id)
        unread = score is not None and score.manual is None and score.needs_manual_grade
        marks[cell.id] = None if score is None or unread else score.points
    states: dict[str, set[str]] = {}
    for test in record["tests"]:
        states.setdefault(test["exercise"], set()).add(test["state"])
    blank = {ident for ident, found in states.items() if found == {"not written"}}
    blank |= {cell.id for cell in chapter.written if cell.id not in record["written"]}
    return Row(student, marks, frozenset(blank), notes=tuple(record["notes"]))


def _wrapped(words: list[str], width: int) -> list[str]:
    lines, line = [], ""
    for word in words:
        if line and len(line) + 3 + len(word) > width:
            lines, line = [*lines, line], ""
        line = f"{line}   {word}" if line else word
    return [*lines, line]


def add_report(commands) -> None:
    parser = commands.add_parser("report", help="show the grades again; nothing is run")
    add_class_options(parser)
    parser.set_defaults(run=report)


def report(args) -> int:
    """Print the tables; return 1 when a submission is not graded."""
    course, folder = Course(), chosen_class(args)
    chosen = chosen_chapters(args, course, folder)
    tables = [table(folder, load(slug, course.root), args.student) for slug in chosen]
    if args.json:
        print(json.dumps({"class": str(folder.root), "chapters": [t.as_json() for t in tables]}))
    else:
        print("\n\n".join(map(str, tables)))
    return 1 if any(row.reason for one in tables for row in one.rows) else 0
