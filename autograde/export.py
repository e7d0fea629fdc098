"""The gradebook as CSV: one file with a line for each question, one with the totals.

Everything is quoted, and text that a spreadsheet would take for a formula is made harmless. The
files start with a byte order mark, without which Excel spoils every name that is not English.
"""

import csv
import io
import json
from pathlib import Path

from autograde.chapters import Course
from autograde.plan import ClassFolder, add_class_options, chosen_chapters, chosen_class
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
    """Write questions.csv and totals.csv; return 1 when a submission is not graded."""
    course, folder = Course(), chosen_class(args)
    chosen = chosen_chapters(args, course, folder)
    chapters = [load(slug, course.root) for slug in chosen]
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
        print(json.dumps({"questions": questions, "totals": totals}))
    else:
        to = args.to or folder.root / "export"
        to.mkdir(parents=True, exist_ok=True)
        for name, columns, rows in [
            ("questions", QUESTIONS, questions),
            ("totals", TOTALS, totals),
        ]:
            path = to / f"{name}.csv"
            path.write_bytes(as_csv(columns, rows).encode("utf-8-sig", errors="replace"))
            print(f"{len(rows):>5} lines  {path}")
    return 1 if any(row["not_graded_because"] for row in totals) else 0
