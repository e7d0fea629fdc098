"""The grades for other programs: CSV of our own, and what Canvas, Moodle and Gradescope read.

Of our own: `questions.csv` has a line for each test, `totals.csv` one for each student and chapter
with raw points, days late and points due, `wide.csv` one for each student with a column for each
exercise. A file's name says what is in it, so that exporting one chapter or student never replaces
the whole class, and a file without a line is not written at all.

Everything is quoted, and text that a spreadsheet would take for a formula is made harmless. The
files start with a byte order mark, without which Excel spoils every name that is not English.
"""

import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from autograde.chapters import UsageError
from autograde.choose import Choice, add_class_options, chosen
from autograde.course_rules import NAME, rules
from autograde.export_canvas import fill_canvas
from autograde.export_gradescope import write_gradescope
from autograde.export_moodle import fill_moodle
from autograde.export_points import Line, lines_of
from autograde.source import Chapter, load

QUESTIONS = ("student", "chapter", "question", "test", "points", "out_of", "to_be_read")
TOTALS = (
    "student", "chapter", "submitted", "points", "out_of", "to_be_read", "not_graded_because",
    "days_late", "slip_days", "fraction_lost", "points_due", "points_due_out_of", "why_due",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def question_rows(lines: Iterable[Line]) -> list[dict]:
    """One row for each student and test or written answer, as the gradebook has it now."""
    return [
        {
            "student": line.student,
            "chapter": line.chapter.slug,
            "question": question,
            "test": test,
            "points": line.scores[test].points,
            "out_of": line.scores[test].out_of,
            "to_be_read": int(line.scores[test].needs_manual_grade),
        }
        for line in lines
        for question, tests in _questions(line.chapter).items()
        for test in tests
        if test in line.scores
    ]


def total_rows(lines: Iterable[Line]) -> list[dict]:
    """One row for each line. What could not be graded has no points, and says why."""
    return [
        {
            "student": line.student,
            "chapter": line.chapter.slug,
            "submitted": line.record.get("submitted", ""),
            "points": line.points,
            "out_of": line.out_of,
            "to_be_read": line.to_be_read,
            "not_graded_because": line.reason,
            "days_late": line.outcome and line.outcome.days_late,
            "slip_days": line.outcome and line.outcome.slip_days,
            "fraction_lost": line.outcome and float(line.outcome.lost),
            "points_due": line.due,
            "points_due_out_of": line.due_out_of if line.scores else None,
            "why_due": line.outcome.why if line.outcome else "",
        }
        for line in lines
    ]


def wide_table(chapters: Sequence[Chapter], lines: Sequence[Line]) -> tuple[list, list[dict]]:
    """Columns and rows: a row for each student, a column for each exercise and chapter."""
    columns = ["student"]
    for chapter in chapters:
        sums = [f"{chapter.slug} {what}" for what in ("points", "days late", "points due")]
        columns += [*_questions(chapter), *sums]
    rows = {line.student: dict.fromkeys(columns) for line in lines}
    for line in lines:
        row, slug = rows[line.student], line.chapter.slug
        row["student"] = line.student
        for question, tests in _questions(line.chapter).items():
            got = [line.scores[test].points for test in tests if test in line.scores]
            row[question] = sum(got) if got else None
        row[f"{slug} points"] = line.points
        row[f"{slug} days late"] = line.outcome and line.outcome.days_late
        row[f"{slug} points due"] = line.due
    return columns, [rows[student] for student in sorted(rows)]


def _questions(chapter: Chapter) -> dict[str, list[str]]:
    """Exercise or written answer -> its lines in the gradebook."""
    tests = {one.id: [test.id for test in one.tests] for one in chapter.exercises.values()}
    return tests | {cell.id: [cell.id] for cell in chapter.written}


def as_csv(columns: Sequence[str], rows: Iterable[dict]) -> str:
    """Rows as CSV text, quoted, with no cell that a spreadsheet would run."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_harmless(row[column]) for column in columns])
    return text.getvalue()


def _harmless(value):
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(FORMULA):
        return "'" + value
    return value


def add_export(commands) -> None:
    parser = commands.add_parser("export", help="write the grades for other programs")
    add_class_options(parser)
    parser.add_argument("--to", type=Path, metavar="DIR", help="default: export/ in the class")
    parser.add_argument(
        "--canvas", type=Path, metavar="FILE", help="fill in a gradebook exported from Canvas"
    )
    parser.add_argument(
        "--assignment", metavar="NAME", help="its name or number in Canvas (default: the chapter's)"
    )
    parser.add_argument(
        "--moodle", type=Path, metavar="FILE", help="fill in a grading worksheet from Moodle"
    )
    parser.add_argument(
        "--gradescope", action="store_true", help="write a results.json for each student"
    )
    parser.set_defaults(run=export)


def export(args) -> int:
    """Write the files; return 1 when something is not graded, not delivered, or there is none."""
    choice = chosen(args)
    _fit_together(args, choice)
    agreed = rules(choice.folder, choice.course)
    every = dict.fromkeys([*choice.folder.chapters(choice.course), *choice.slugs])
    chapters = {slug: load(slug, choice.course) for slug in every}
    lines = lines_of(choice.folder, list(chapters.values()), agreed)
    for student in sorted(set(agreed.extensions) - {line.student for line in lines}):
        print(f"{NAME} has extensions for {student!r}, who handed in nothing", file=sys.stderr)
    mine = [
        line
        for line in lines
        if line.chapter.slug in choice.slugs and args.student in (None, line.student)
    ]
    if args.json:
        tables = {"questions": question_rows(mine), "totals": total_rows(mine)}
        print(json.dumps({**choice.as_json(), **tables}))
        delivered = True
    else:
        delivered = _write(args, choice, [chapters[slug] for slug in choice.slugs], mine)
    ungraded = not mine or any(line.reason for line in mine)
    return 1 if choice.tell_strays() or ungraded or not delivered else 0


def _fit_together(args, choice: Choice) -> None:
    if args.json and (args.canvas or args.moodle or args.gradescope):
        raise UsageError(
            "--json writes no files; take it away, or --canvas, --moodle, --gradescope"
        )
    if args.student and (args.canvas or args.moodle):  # two of one name are told apart by both
        raise UsageError("--canvas and --moodle fill in the whole class; take --student away")
    one = len(set(choice.named)) == 1
    if args.moodle and not one:
        raise UsageError("a worksheet of Moodle is of one assignment; name its chapter, such as 02")
    if args.assignment and not (args.canvas and one):
        raise UsageError("--assignment goes with --canvas FILE and the one chapter that it is")


def _write(args, choice: Choice, chapters: list[Chapter], lines: list[Line]) -> bool:
    """All files that were asked for; False when somebody's points found no place."""
    to, start = args.to or choice.folder.root / "export", _start(choice)
    # A foreign file that does not fit is refused before anything is written.
    filled = []
    if args.canvas:
        found = fill_canvas(args.canvas, choice.folder, chapters, lines, args.assignment)
        filled.append(("canvas", found))
    if args.moodle:
        filled.append(("moodle", fill_moodle(args.moodle, lines)))
    for name, path in (("canvas", args.canvas), ("moodle", args.moodle)):
        if path and path.resolve() == (to / f"{start}{name}.csv").resolve():
            raise UsageError(f"{path} would be written over; give another folder with --to")
    to.mkdir(parents=True, exist_ok=True)
    columns, wide = wide_table(chapters, lines)
    for name, heads, rows in [
        ("questions", QUESTIONS, question_rows(lines)),
        ("totals", TOTALS, total_rows(lines)),
        ("wide", columns, wide),
    ]:
        path = to / f"{start}{name}.csv"
        if not rows:
            print(f"no lines, so not written: {path}")
            continue
        path.write_bytes(as_csv(heads, rows).encode("utf-8-sig", errors="replace"))
        print(f"{len(rows):>5} lines  {path}")
    for name, found in filled:
        path = to / f"{start}{name}.csv"
        path.write_bytes(found.data)
        print(f"{len(found.filled):>5} grades {path}", *found.told, sep="\n")
    if args.gradescope:
        count = write_gradescope(to / "gradescope", lines)
        print(f"{count:>5} files  {to / 'gradescope'}")
    return not any(found.missing for _, found in filled)


def _start(choice: Choice) -> str:
    """How the names of the files begin: the chapters and the student that were named."""
    named = [*dict.fromkeys(choice.named), *([choice.student] if choice.student else [])]
    return "".join(f"{one}-" for one in named)
