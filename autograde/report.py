"""The table of grades: one line a student, one column an exercise, and why points are missing."""

import json
from dataclasses import dataclass, field

from autograde.chapters import UsageError
from autograde.choose import Choice, add_class_options, chosen
from autograde.plan import ClassFolder, write
from autograde.record import Score, scores
from autograde.source import Chapter, load

BLANK, WAITING = "-", "?"
WIDEST = 100  # characters of a line of reasons
IN_WORDS = {
    "pass": "",
    "fail": "the test does not hold",
    "error": "the answer stopped with an error",
    "timeout": "the answer ran over its time",
    "out of memory": "the answer asked for more memory than it may have",
    "killed": "the answer's process was ended before it was done",
    "not written": "this is not written yet",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One student's line. `marks` has points for each exercise, None where a person must read."""

    student: str
    marks: dict[str, float | None]
    blank: frozenset[str] = frozenset()  # exercises that were not attempted
    reason: str | None = None  # why the submission could not be graded
    why: dict[str, str] = field(default_factory=dict)  # exercise -> why points are missing there
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> float | None:
        """None, rather than 0, where nothing was graded."""
        if self.reason:
            return None
        return sum(mark for mark in self.marks.values() if mark is not None)

    @property
    def in_short(self) -> str | None:
        """One line: why it is not graded, or why points are missing; None at full marks."""
        if self.reason:
            return f"not graded: {self.reason}"
        told = [f"{_name(one)}: {why}" for one, why in self.why.items() if one not in self.blank]
        if empty := [_name(ident) for ident in self.why if ident in self.blank]:
            all_of_it = len(empty) == len(self.marks)
            told.append("nothing attempted" if all_of_it else f"not attempted: {', '.join(empty)}")
        if not told:
            return None
        more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
        room = WIDEST - len(self.student) - len(more) - 2
        return (told[0] if len(told[0]) <= room else f"{told[0][: room - 4]} ...") + more


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
                    "graded": row.reason is None,
                    "reason": row.in_short,
                    "why": row.why,
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
        if not self.rows:
            lines.append("nobody has handed in this chapter")
        legend = [f"{head} {_name(ident)}" for head, ident in zip(heads, idents, strict=True)]
        lines += ["", *_wrapped(legend, 96), "- not attempted   ? to be read by a person"]
        return "\n".join([*lines, *self._reasons()])

    def _reasons(self) -> list[str]:
        """A line for each graded student without full marks, in words."""
        short = [f"{row.student}: {row.in_short}" for row in self.rows if row.why]
        number = self.slug.partition("-")[0]
        rest = f"`python -m autograde explain {number} --student ID` has the rest"
        return ["", f"why points are missing ({rest}):", *map(printable, short)] if short else []

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
    why = _why(chapter, record, in_book, marks)
    return Row(student, marks, frozenset(blank), why=why, notes=tuple(record["notes"]))


def _why(
    chapter: Chapter, record: dict, in_book: dict[str, Score], marks: dict[str, float | None]
) -> dict[str, str]:
    """Exercise -> the first line of what its first lost test said, or who took the points."""
    said: dict[str, str] = {}
    for test in record["tests"]:
        if test["state"] != "pass":
            said.setdefault(test["exercise"], in_words(test).splitlines()[0])
    why = {}
    for exercise in chapter.exercises.values():
        if marks[exercise.id] < exercise.points:
            mine = [in_book[test.id] for test in exercise.tests if test.id in in_book]
            manual = any(score.manual is not None for score in mine)
            other = "points taken by a person" if manual else "the chapter has changed; regrade it"
            why[exercise.id] = said.get(exercise.id, other)
    for cell in chapter.written:
        mark = marks[cell.id]
        if mark is not None and mark < cell.header["points"]:
            read = cell.id in in_book and in_book[cell.id].manual is not None
            why[cell.id] = "read by a person" if read else "no answer"
    return why


def in_words(test: dict) -> str:
    """What a test said; where it could say nothing, what its state means."""
    return test["message"].strip() or IN_WORDS.get(test["state"], test["state"])


def _name(ident: str) -> str:
    """An exercise's id without the number of its chapter."""
    return ident.partition("-")[2]


def printable(line: str) -> str:
    """Without control characters, which an answer could use to rewrite the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)


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
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--html", action="store_true", help="write a page on each chapter instead")
    instead.add_argument(
        "--similarity", action="store_true", help="list answers that are written alike instead"
    )
    parser.set_defaults(run=report)


def report(args) -> int:
    """Print the tables; return 1 when a submission is not graded."""
    choice = chosen(args)
    if args.student and (args.html or args.similarity):
        raise UsageError("--html and --similarity look at a whole class; take --student away")
    if args.similarity:
        return _show_similarity(choice, as_json=args.json)
    tables = [
        table(choice.folder, load(slug, choice.course), args.student) for slug in choice.slugs
    ]
    if args.json:
        print(json.dumps({**choice.as_json(), "chapters": [one.as_json() for one in tables]}))
    elif args.html:
        _write_pages(choice)
    else:
        print("\n\n".join(map(str, tables)))
    ungraded = any(row.reason for one in tables for row in one.rows)
    return 1 if choice.tell_strays() or ungraded else 0


def _show_similarity(choice: Choice, *, as_json: bool) -> int:
    from autograde.similarity import of_class

    found = [
        of_class(choice.folder, load(slug, choice.course), choice.course) for slug in choice.slugs
    ]
    if as_json:
        print(json.dumps({**choice.as_json(), "chapters": [one.as_json() for one in found]}))
    else:
        print("\n\n".join(map(str, found)))
    return 1 if choice.tell_strays() else 0


def _write_pages(choice: Choice) -> None:
    from autograde.report_page import report_page  # which needs the table above

    for slug in choice.slugs:
        path = choice.folder.root / "report" / f"{slug}.html"
        write(path, report_page(choice.folder, load(slug, choice.course)))
        print(path)
