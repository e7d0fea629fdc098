"""The page of feedback on one submission: our words only, readable offline, on any screen.

Nothing of the submission is put on the page as HTML, and nothing of the hidden tests: a page shows
what each test checks (its docstring), how it went, and what `feedback_words` lets through. Its only
links lead to its own parts and, where the class names one, to the published book.
"""

import ast
import datetime
from html import escape

from autograde.feedback_words import lines_of
from autograde.page_style import whole_page
from autograde.record import Score
from autograde.sections import section_of
from autograde.source import Chapter, Exercise
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
{counts}<p>{who}</p>
<ul class="contents">
{contents}
</ul>
{sections}
{notes}"""

STYLE = """
a { color: inherit; } a:focus-visible { outline: .15rem solid; outline-offset: .15rem; }
section:target > h2 { text-decoration: underline; }
ul.contents { list-style: none; padding: 0; border-bottom: 1px solid var(--line); }
ul.contents li { display: flex; gap: .6rem; padding: .3rem 0;
  border-top: 1px solid var(--line); }
ul.contents li > a { flex: 1; overflow-wrap: anywhere; }
ul.contents li.pass > span:first-child { color: var(--good); }
ul.contents li.missed > span:first-child { color: var(--bad); }
.tests p { margin: .35rem 0; }
"""


def feedback_page(
    chapter: Chapter,
    record: dict,
    in_book: dict[str, Score],
    book: str | None = None,
    *,
    counts: str = "",
    zone: datetime.tzinfo = datetime.UTC,
) -> str:
    """The page of one graded submission, from its record and its lines in the gradebook.

    `book` is the address of the published book; without it, sections are named and not linked.
    `counts` says what the class's rules make of the points; times are told in its `zone`.
    """
    parts = _Parts(chapter, record, in_book, book)
    unread = sum(score.needs_manual_grade for score in in_book.values())
    total = sum(score.points for score in in_book.values())
    out_of = sum(score.out_of for score in in_book.values())
    title = escape(f"{chapter.title}: feedback")
    body = BODY.format(
        title=title,
        points=f"{total:g} of {out_of:g}",
        waiting=f", {unread} still to be read by a person" if unread else "",
        counts=f"<p>{escape(counts)}</p>\n" if counts else "",
        who=f"For {escape(record['student'])}, {escape(record['file'])}, "
        f"received {escape(_readable(record['submitted'], zone))}.",
        contents="\n".join(parts.contents()),
        sections="\n".join(parts.sections()),
        notes=_notes(record["notes"]),
    )
    return whole_page(title, body, STYLE)


class _Parts:
    """The parts of a page that speak of one exercise or one written answer each."""

    def __init__(self, chapter: Chapter, record: dict, in_book: dict[str, Score], book):
        self._chapter, self._record, self._in_book = chapter, record, in_book
        self._book = book
        self._verdicts = {test["test"]: test for test in record["tests"]}

    def contents(self) -> list[str]:
        """A line for each, with its sign and points, that leads to the part below."""
        lines = [
            self._line(one.id, one.title, *self._sign(one), self._points(one), one.points)
            for one in self._chapter.exercises.values()
        ]
        for cell in self._chapter.written:
            sign, words, _ = self._state(cell)
            points = self._in_book[cell.id].points if cell.id in self._in_book else 0
            title = cell.header.get("title", cell.id)
            kind = "pass" if sign == "✓" else "open"
            lines.append(
                self._line(cell.id, title, kind, sign, words, points, cell.header["points"])
            )
        return lines

    def _line(self, ident, title, kind, sign, words, points, out_of) -> str:
        mark = f'<span role="img" aria-label="{escape(words)}">{sign}</span>'
        link = f'<a href="#{escape(ident)}">{escape(title)}</a>'
        return f'<li class="{kind}">{mark} {link} <span>{points:g} of {out_of:g}</span></li>'

    def _sign(self, exercise: Exercise) -> tuple[str, str, str]:
        states = {self._verdicts[test.id]["state"] for test in self._mine(exercise)}
        if states == {"pass"} or self._points(exercise) == exercise.points:
            return "pass", "✓", "all points"
        if states <= {"pass", "not written"} and "pass" not in states:
            return "open", "○", "not written yet"
        return "missed", "✗", "not all points yet"

    def _mine(self, exercise: Exercise) -> list[Cell]:
        return [test for test in exercise.tests if test.id in self._verdicts]

    def _points(self, exercise: Exercise) -> float:
        tests = self._mine(exercise)
        return sum(self._in_book[test.id].points for test in tests if test.id in self._in_book)

    def sections(self) -> list[str]:
        exercises = [self._exercise(one) for one in self._chapter.exercises.values()]
        return exercises + [self._written(cell) for cell in self._chapter.written]

    def _exercise(self, exercise: Exercise) -> str:
        head = f"{escape(exercise.title)}: {self._points(exercise):g} of {exercise.points:g} points"
        tests = "\n".join(self._test(test, exercise) for test in self._mine(exercise))
        lead = "Explained in" if self._sign(exercise)[0] == "pass" else "To reread:"
        where = self._reread(exercise.cell, lead)
        return _section(exercise.id, head, f'{where}<ul class="tests">\n{tests}\n</ul>')

    def _test(self, cell: Cell, exercise: Exercise) -> str:
        verdict, score = self._verdicts[cell.id], self._in_book.get(cell.id)
        sign, words = STATES[verdict["state"]]
        kind = {"pass": "pass", "not written": "open"}.get(verdict["state"], "missed")
        points = f"{score.points if score else 0:g} of {verdict['points']:g}"
        what = _docstring(cell)
        lines = [
            f'<li class="{kind}"><strong>{sign} {words}</strong>, {points}'
            f"{': ' if what else ''}{escape(what)}"
        ]
        if verdict["state"] not in ("pass", "not written"):
            said, message = lines_of(cell, verdict, exercise)
            lines += [f"<p>{escape(one)}</p>" for one in said]
            lines += [f"<pre>{escape(message)}</pre>"] if message else []
        if score and score.manual is not None:
            lines.append("<p>These points were given by a person.</p>")
        return "\n".join([*lines, "</li>"])

    def _written(self, cell: Cell) -> str:
        score = self._in_book.get(cell.id)
        sign, words, comment = self._state(cell)
        points = f"{score.points:g}" if score else "0"
        title = escape(cell.header.get("title", cell.id))
        head = f"{title}: {points} of {cell.header['points']:g} points"
        said = f"<pre>{escape(comment)}</pre>\n" if comment else ""
        where = self._reread(cell, "Explained in")
        return _section(cell.id, head, f"<p>{sign} {words}</p>\n{said}{where}")

    def _state(self, cell: Cell) -> tuple[str, str, str | None]:
        """Sign and words for a written answer, and what a person said about it."""
        score = self._in_book.get(cell.id)
        comment = score.comment if score else None
        if cell.id not in self._record["written"]:
            return "○", "no answer yet", comment
        if score is None or score.needs_manual_grade:
            return "…", "still to be read by a person", comment
        return "✓", "read by a person", comment

    def _reread(self, cell: Cell, lead: str) -> str:
        """Where the chapter explains it."""
        section = section_of(self._chapter, cell)
        if section is None:
            return ""
        title = f"“{escape(section.title)}”"
        if self._book:
            title = f'<a href="{escape(section.address(self._book))}">{title}</a>'
        return f"<p>{lead} section {section.number} of the chapter, {title}.</p>\n"


def _section(ident: str, head: str, body: str) -> str:
    return f'<section id="{escape(ident)}">\n<h2>{head}</h2>\n{body}\n</section>'


def _docstring(cell: Cell) -> str:
    """What a test checks, as its author says; the docstring is in the students' notebook too."""
    try:
        return " ".join((ast.get_docstring(parse(cell.visible_text)) or "").split())
    except SyntaxError:
        return ""


def _notes(notes: list[str]) -> str:
    if not notes:
        return ""
    items = "\n".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<section>\n<h2>About your notebook</h2>\n<ul>\n{items}\n</ul>\n</section>"


def _readable(moment: str, zone: datetime.tzinfo) -> str:
    return f"{datetime.datetime.fromisoformat(moment).astimezone(zone):%Y-%m-%d %H:%M %Z}"
