"""One page of feedback a student and chapter: our words only, readable offline, on any screen.

Nothing of the submission is put on the page as HTML, and nothing of the hidden tests: a page shows
what each test checks (its docstring), how it went, and the message of the first thing that failed.
It lies where nbgrader puts its own feedback, so nbgrader's release_feedback hands it out.
"""

import ast
import json
import re
from html import escape

from autograde.chapters import Course
from autograde.choose import add_class_options, chosen
from autograde.page_style import whole_page
from autograde.plan import ClassFolder, write
from autograde.record import Score, scores
from autograde.source import Chapter, Exercise, load
from autograde.source_cells import Cell
from autograde.syntax import parse

# State -> the sign and the words shown for it: never a colour alone.
STATES = {
    "pass": ("✓", "passed"),
    "fail": ("✗", "not yet"),
    "error": ("✗", "stopped with an error"),
    "timeout": ("✗", "ran out of time"),
    "out of memory": ("✗", "needed more memory than there was"),
    "killed": ("✗", "ended before it could answer"),
    "not written": ("○", "not written yet"),
}

BODY = """<h1>{title}</h1>
<p class="sum">{points} points{waiting}</p>
<p>{who}</p>
{sections}
{notes}"""


def feedback_page(chapter: Chapter, record: dict, in_book: dict[str, Score]) -> str:
    """The page of one graded submission, from its record and its lines in the gradebook."""
    total = sum(score.points for score in in_book.values())
    out_of = sum(score.out_of for score in in_book.values())
    tests: dict[str, dict] = {test["test"]: test for test in record["tests"]}
    sections = [_exercise(one, tests, in_book) for one in chapter.exercises.values()]
    sections += [_written(cell, record, in_book.get(cell.id)) for cell in chapter.written]
    unread = sum(score.needs_manual_grade for score in in_book.values())
    title = escape(f"{chapter.title}: feedback")
    body = BODY.format(
        title=title,
        points=f"{total:g} of {out_of:g}",
        waiting=f", {unread} still to be read by a person" if unread else "",
        who=f"For {escape(record['student'])}, {escape(record['file'])}, "
        f"received {escape(_readable(record['submitted']))}.",
        sections="\n".join(sections),
        notes=_notes(record["notes"]),
    )
    return whole_page(title, body)


def _exercise(exercise: Exercise, tests: dict[str, dict], in_book: dict[str, Score]) -> str:
    mine = [test for test in exercise.tests if test.id in tests]
    points = sum(in_book[test.id].points for test in mine if test.id in in_book)
    items = "\n".join(_test(test, tests[test.id], in_book.get(test.id), exercise) for test in mine)
    head = f"{escape(exercise.title)}: {points:g} of {exercise.points:g} points"
    return f'<section>\n<h2>{head}</h2>\n<ul class="tests">\n{items}\n</ul>\n</section>'


def _test(cell: Cell, verdict: dict, score: Score | None, exercise: Exercise) -> str:
    sign, words = STATES[verdict["state"]]
    kind = "pass" if verdict["state"] == "pass" else "missed"
    points = score.points if score else 0.0
    lines = [
        f'<li class="{kind}"><strong>{sign} {words}</strong>, '
        f"{points:g} of {verdict['points']:g}: {escape(_docstring(cell))}"
    ]
    if verdict["state"] not in ("pass", "not written") and verdict["message"]:
        lines.append(f"<pre>{escape(_ours_alone(verdict['message'], exercise))}</pre>")
    if score and score.manual is not None:
        lines.append("<p>These points were given by a person.</p>")
    return "\n".join([*lines, "</li>"])


def _ours_alone(message: str, exercise: Exercise) -> str:
    """A message without the line that quotes a test: it may be a hidden one."""
    tests = "|".join(re.escape(test.id) for test in exercise.tests)
    return re.sub(rf"\n *in line \d+ of <(?:{tests})>:.*", "", message)


def _docstring(cell: Cell) -> str:
    """What a test checks, as its author says; the docstring is in the students' notebook too."""
    try:
        return " ".join((ast.get_docstring(parse(cell.visible_text)) or "").split())
    except SyntaxError:
        return ""


def _written(cell: Cell, record: dict, score: Score | None) -> str:
    if cell.id not in record["written"]:
        state = "○ no answer yet"
    elif score is None or score.needs_manual_grade:
        state = "… still to be read by a person"
    else:
        state = "read by a person"
    points = f"{score.points:g}" if score else "0"
    head = f"{escape(cell.header.get('title', cell.id))}: {points} of {cell.header['points']:g}"
    said = f"\n<pre>{escape(score.comment)}</pre>" if score and score.comment else ""
    return f"<section>\n<h2>{head} points</h2>\n<p>{state}</p>{said}\n</section>"


def _notes(notes: list[str]) -> str:
    if not notes:
        return ""
    items = "\n".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<section>\n<h2>About your notebook</h2>\n<ul>\n{items}\n</ul>\n</section>"


def _readable(moment: str) -> str:
    return moment.replace("T", " ").replace("+00:00", " UTC")


def write_feedback(
    folder: ClassFolder, slug: str, *, course: Course | None = None, student: str | None = None
) -> tuple[list[str], list[str]]:
    """Write the pages of one chapter: the students who have one now, and those who cannot."""
    course = course or Course()
    chapter = load(slug, course)
    in_book = scores(folder, slug)
    done, left = [], []
    for one in folder.students(slug):
        if student not in (None, one):
            continue
        record = folder.read_record(one, slug)
        if record is None or not record["graded"] or one not in in_book:
            left.append(one)
            continue
        write(folder.feedback(one, slug), feedback_page(chapter, record, in_book[one]))
        done.append(one)
    return done, left


def add_feedback(commands) -> None:
    parser = commands.add_parser("feedback", help="write a page for each student")
    add_class_options(parser)
    parser.set_defaults(run=feedback)


def feedback(args) -> int:
    """Say where the pages are; return 1 when a submission is not graded."""
    choice = chosen(args)
    folder = choice.folder
    missing, shown = False, []
    for slug in choice.slugs:
        done, left = write_feedback(folder, slug, course=choice.course, student=args.student)
        missing = missing or bool(left)
        shown.append({"chapter": slug, "written": done, "not graded": left})
        if not args.json:
            print(f"{slug}: {len(done)} pages in {folder.root / 'feedback'}")
            for one in left:
                print(f"  not graded, so no page: {one}")
    if args.json:
        print(json.dumps({**choice.as_json(), "chapters": shown}))
    return 1 if choice.tell_strays() or missing else 0
