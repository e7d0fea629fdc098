"""Written answers as a marker sees them: under ids that tell nothing, beside their rubric.

An id comes from the class's secret key, so it stays the same and leads back to nobody without the
key. Each answer has its own, so that a marker cannot tell which answers are of one person. Ids are
consonants alone: a spreadsheet would take `1e5` for a number, and they spell no word.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograde.build import instructor_notebook
from autograde.comment_bank import expanded
from autograde.export import FORMULA
from autograde.export_sheet import BadSheet, read_sheet
from autograde.plan import ClassFolder
from autograde.record import Score, scores
from autograde.secret import seed_for
from autograde.source import Chapter
from autograde.source_cells import Cell
from autograde.written import plain

COLUMNS = (
    "answer", "exercise", "text", "points", "out_of", "comment", "rubric", "version", "marker",
)  # fmt: skip
LETTERS = "bcdfghjkmnpqrstvwxyz"
SHORT = 7  # letters of an id: two of a thousand answers are alike once in two thousand classes
SAVE_AS = "in Excel, save it as 'CSV UTF-8'"


@dataclass(frozen=True, slots=True)
class Answer:
    """One written answer of one student, as it was graded last."""

    id: str
    exercise: str
    student: str
    text: str
    version: str  # changes with the text
    score: Score

    @property
    def marked(self) -> bool:
        """A person has given points for this very text."""
        return self.score.manual is not None and not self.score.needs_manual_grade


@dataclass(frozen=True, slots=True)
class Mark:
    """What a marker says of an answer; without points it is not marked yet."""

    points: float | None
    comment: str = ""


# What there is to mark


def answers(folder: ClassFolder, chapter: Chapter) -> list[Answer]:
    """Every written answer of a chapter that somebody gave, in the order of the ids."""
    found = [
        (cell, student, text, in_book[cell])
        for student, in_book in scores(folder, chapter.slug).items()
        for cell, text in _texts(folder, chapter, student).items()
        if cell in in_book
    ]
    whole = [_letters(folder, f"answer {cell} {student}") for cell, student, *_ in found]
    ids = _distinct(whole)
    made = [
        Answer(ident, cell, student, text, _letters(folder, f"{cell} {text}")[:SHORT], score)
        for ident, (cell, student, text, score) in zip(ids, found, strict=True)
    ]
    return sorted(made, key=lambda answer: answer.id)


def drawn(folder: ClassFolder, found: Sequence[Answer], number: int) -> list[Answer]:
    """So many answers of each exercise, at random but always the same; more hold the fewer."""
    order = sorted(found, key=lambda answer: seed_for(folder, f"drawn {answer.id}"))
    taken, left = [], Counter()
    for answer in order:
        left[answer.exercise] += 1
        if left[answer.exercise] <= number:
            taken.append(answer)
    return sorted(taken, key=lambda answer: answer.id)


def _texts(folder: ClassFolder, chapter: Chapter, student: str) -> dict[str, str]:
    """Written cell -> the text that was graded, which formgrader shows as well."""
    record = folder.read_record(student, chapter.slug)
    if not record or not record.get("written"):
        return {}
    notebook = json.loads(folder.autograded(student, chapter.slug).read_text(encoding="utf-8"))
    cells = {
        cell["metadata"].get("nbgrader", {}).get("grade_id"): "".join(cell["source"])
        for cell in notebook["cells"]
    }
    return {one.id: cells[one.id] for one in chapter.written if one.id in record["written"]}


def _letters(folder: ClassFolder, what: str) -> str:
    number, letters = int(seed_for(folder, what), 16), ""
    while number:
        number, place = divmod(number, len(LETTERS))
        letters += LETTERS[place]
    return letters


def _distinct(whole: Sequence[str]) -> list[str]:
    """The beginnings of long ids, no longer than it takes to tell them apart."""
    length = SHORT
    while len({one[:length] for one in whole}) < len(whole):
        length += 1
    return [one[:length] for one in whole]


# The rubric


def question(chapter: Chapter, cell: Cell) -> str:
    """The text above a written answer, as students have it: the question, and what earns points."""
    above = instructor_notebook(chapter).cells[cell.index - 1]
    return above.source if above.cell_type == "markdown" else ""


def rubric(text: str) -> dict[str, str]:
    """Key -> point for each bold phrase of the last paragraph, with what stands in brackets."""
    paragraph = plain(text.strip().rpartition("\n\n")[2])
    points = re.findall(r"\*\*(.+?)\*\*(\s*\([^()]*\))?", paragraph)
    return {
        re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"): name + brackets
        for name, brackets in points
    }


# The sheet


def rows(
    found: Sequence[Answer], rubrics: Mapping[str, Mapping], marks: Mapping[str, Mark], marker: str
) -> list[dict]:
    """A line for each answer; `marks` are those that the marker has given already."""
    made = []
    for answer in found:
        mark = marks.get(answer.id)
        made.append(
            {
                "answer": answer.id,
                "exercise": answer.exercise,
                "text": answer.text,
                "points": f"{mark.points:g}" if mark and mark.points is not None else "",
                "out_of": answer.score.out_of,
                "comment": mark.comment if mark else "",
                "rubric": "\n".join(rubrics[answer.exercise].values()),
                "version": answer.version,
                "marker": marker,
            }
        )
    return made


def lines(path: Path) -> list[dict[str, str]]:
    """The lines of a sheet that came back, by column, each with its number under `line`."""
    sheet = read_sheet(path, SAVE_AS)
    places = {name: sheet.column(name) for name in COLUMNS}
    if missing := [name for name, place in places.items() if place is None]:
        raise BadSheet(f"{path} has no column {', '.join(missing)}; fill in the sheet of --export")
    return [
        {name: _shown(sheet.cell(at, place)) for name, place in places.items()} | {"line": at + 1}
        for at in range(1, len(sheet.rows))
        if any(cell.strip() for cell in sheet.rows[at])
    ]


def _shown(cell: str) -> str:
    """Without the quote that keeps a spreadsheet from running it."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def read_marks(
    said: Sequence[dict],
    known: Mapping[str, Answer],
    banks: Mapping[str, Mapping[str, str]],
    before: Mapping[str, Mark],
) -> tuple[dict[str, Mark], list[str]]:
    """The marks of a sheet, and what is wrong with the lines that hold any. None is marked yet."""
    twice = Counter(line["answer"] for line in said)
    marks, wrong = {}, []
    for line in said:
        if not line["points"] and twice[line["answer"]] == 1:
            continue
        try:
            if twice[line["answer"]] > 1:
                raise ValueError(f"this answer has {twice[line['answer']]} lines; keep one")
            answer = _meant(line, known)
            comment, old = line["comment"], before.get(answer.id, Mark(None))
            if plain(comment) in ("", plain(old.comment)):  # its own words may hold a #
                comment = old.comment
            else:
                comment = expanded(comment, banks[answer.exercise])
            marks[answer.id] = Mark(_points(line["points"], answer.score.out_of), comment)
        except ValueError as error:
            wrong.append(f"line {line['line']}, {line['answer'] or 'no id'}: {error}")
    return marks, wrong


def _meant(line: dict, known: Mapping[str, Answer]) -> Answer:
    """The answer of a line, if its text is still the one that the marker has read."""
    answer = known.get(line["answer"])
    if answer is None or answer.exercise != line["exercise"]:
        exercises = ", ".join(sorted({one.exercise for one in known.values()})) or "nothing"
        raise ValueError(
            f"there is no such answer to {line['exercise'] or 'an exercise without a name'}; "
            f"here are answers to {exercises}: is the sheet of this class and chapter?"
        )
    if answer.version != line["version"]:
        raise ValueError("the answer has changed since the sheet was written; export it again")
    if plain(answer.text) != plain(line["text"]):
        raise ValueError(
            "the text is not the one that was exported; were the columns sorted apart?"
        )
    return answer


def _points(text: str, out_of: float) -> float:
    """Points as people write them: 2, 2.5 or 2,5."""
    points = float(text.replace(",", ".")) if re.fullmatch(r"[0-9]+([.,][0-9]+)?", text) else -1
    if not 0 <= points <= out_of:
        raise ValueError(f"the points are {text!r}, which is no number from 0 to {out_of:g}")
    return points
