"""results.json as Gradescope reads it: one for each student and chapter.

Source: Gradescope's "Autograder Specifications", sections "Output format" and "Controlling Test
Case Visibility" (gradescope-autograders.readthedocs.io/en/latest/specs). There, a test that is
`hidden` is never shown and should carry no points. Ours carry points, so a test with a hidden part
is `after_published`: students see how it went when the grades are published, and not before.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from autograde.export_points import Line
from autograde.feedback_words import lines_of
from autograde.plan import write
from autograde.report import in_words
from autograde.source import Exercise
from autograde.source_cells import Cell

LATER, NOW = "after_published", "visible"


def write_gradescope(to: Path, lines: Iterable[Line]) -> int:
    """Write CHAPTER/STUDENT/results.json for everything that is graded; how many there are."""
    graded = [line for line in lines if line.record.get("graded") and line.scores]
    for line in graded:
        text = json.dumps(results(line), indent=1, ensure_ascii=False) + "\n"
        write(to / line.chapter.slug / line.student / "results.json", text)
    return len(graded)


def results(line: Line) -> dict:
    """What Gradescope reads about one graded submission. `score` is what is due."""
    said = {test["test"]: test for test in line.record["tests"]}
    tests = [
        _test(line, exercise, cell, said.get(cell.id))
        for exercise in line.chapter.exercises.values()
        for cell in exercise.tests
        if cell.id in line.scores
    ]
    tests += [_written(line, cell) for cell in line.chapter.written if cell.id in line.scores]
    return {
        "score": line.due,
        "output": f"{line.due:g} of {line.due_out_of:g} points; {line.outcome.why}",
        "visibility": NOW,
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"student": line.student, "chapter": line.chapter.slug},
    }


def _test(line: Line, exercise: Exercise, cell: Cell, verdict: dict | None) -> dict:
    hidden = cell.text != cell.visible_text
    output = "" if verdict is None else _said(cell, verdict, exercise)
    return _entry(line, cell, output, exercise.tier, LATER if hidden else NOW)


def _said(cell: Cell, verdict: dict, exercise: Exercise) -> str:
    """What the learner's page says as well: nothing of a hidden part."""
    if verdict["state"] in ("pass", "not written"):
        return in_words(verdict)
    told, message = lines_of(cell, verdict, exercise)
    return "\n".join(filter(None, [*told, message])) or in_words({**verdict, "message": ""})


def _written(line: Line, cell: Cell) -> dict:
    unread = line.scores[cell.id].needs_manual_grade
    output = "to be read by a person" if unread else ""
    return _entry(line, cell, output, cell.header.get("tier", "core"), NOW)


def _entry(line: Line, cell: Cell, output: str, tier: str, visibility: str) -> dict:
    score = line.scores[cell.id]
    return {
        "name": cell.id,
        "score": score.points,
        "max_score": score.out_of,
        "output": output,
        "tags": [tier, *(["does not count"] if cell.id in line.left_out else [])],
        "visibility": visibility,
    }
