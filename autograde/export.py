"""The gradebook as CSV: one file with a line for each question, one with the totals.

A file's name says what is in it, so that exporting one chapter or student never replaces the
whole class, and a file without a line is not written at all.

Everything is quoted, and text that a spreadsheet would take for a formula is made harmless. The
files start with a byte order mark, without which Excel spoils every name that is not English.
"""

import csv
import io
import json
from pathlib import Path

from autograde.choose import Choice, add_class_options, chosen
from autograde.plan import ClassFolder
from autograde.record import scores
from autograde.source import Chapter, load

QUESTIONS = ("student", "chapter", "question", "test", "points", "out_of", "to_be_read")
TOTALS = ("student", "chapter", "submitted", "points", "out_of", "to_be_read", "not_graded_because")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def question_rows(chapter: Chapter, folder: ClassFolder) -> list[dict]:
    """One line for each student and test or written answer, as the gradebook has it now."""
    questions = {
        test.id: exercise.id for exercise in chapter.exercises.values() for test in exercise.tests
    }
    questions |= {cell.id: cell.id for cell in chapter.written}
    return [
        {
            "student": student,
            "chapter": chapter.slug,
            "question": questions[test],
            "test": test,
            "points": line[test].points,
            "out_of": line[test].out_of,
            "to_be_read": int(line[test].needs_manual_grade),
        }
        for student, line in sorted(scores(folder, chapter.slug).items())
        for test in questions
        if test in line
    ]


def total_rows(chapter: Chapter, folder: ClassFolder) -> list[dict]:
    """One line for each student who handed in, or whom the gradebook knows for this chapter.

    A submission that could not be graded has no points, rather than zero, and says why.
    """
    in_book = scores(folder, chapter.slug)
    rows = []
    for student in sorted({*in_book, *folder.students(chapter.slug)}):
        record = folder.read_record(student, chapter.slug) or {}
        line = list(in_book.get(student, {}).values())
        rows.append(
            {
                "student": student,
                "chapter": chapter.slug,
                "submitted": record.get("submitted", ""),
                "points": sum(score.points for score in line) if line else None,
                "out_of": sum(score.out_of for score in line) if line else None,
                "to_be_read": sum(score.needs_manual_grade for score in line),
                "not_graded_because": record.get("reason")
                or ("" if line else "not graded yet; run `python -m autograde grade`"),
            }
        )
    return rows


def as_csv(columns: tuple[str, ...], rows: list[dict]) -> str:
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
    parser = commands.add_parser("export", help="write the grades as CSV")
    add_class_options(parser)
    parser.add_argument("--to", type=Path, metavar="DIR", help="default: export/ in the class")
    parser.set_defaults(run=export)


def export(args) -> int:
    """Write the two files; return 1 when a submission is not graded, or there is none."""
    choice = chosen(args)
    folder = choice.folder
    chapters = [load(slug, choice.course) for slug in choice.slugs]
    questions, totals = (
        [
            row
            for chapter in chapters
            for row in rows(chapter, folder)
            if args.student in (None, row["student"])
        ]
        for rows in (question_rows, total_rows)
    )
    if args.json:
        print(json.dumps({**choice.as_json(), "questions": questions, "totals": totals}))
    else:
        to = args.to or folder.root / "export"
        to.mkdir(parents=True, exist_ok=True)
        for name, columns, rows in [
            ("questions", QUESTIONS, questions),
            ("totals", TOTALS, totals),
        ]:
            path = to / f"{_start(choice)}{name}.csv"
            if not rows:
                print(f"no lines, so not written: {path}")
                continue
            path.write_bytes(as_csv(columns, rows).encode("utf-8-sig", errors="replace"))
            print(f"{len(rows):>5} lines  {path}")
    ungraded = not totals or any(row["not_graded_because"] for row in totals)
    return 1 if choice.tell_strays() or ungraded else 0


def _start(choice: Choice) -> str:
    """How the names of the files begin: the chapters and the student that were named."""
    named = [*dict.fromkeys(choice.named), *([choice.student] if choice.student else [])]
    return "".join(f"{one}-" for one in named)
