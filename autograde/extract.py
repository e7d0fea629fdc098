"""Find each exercise's answer in a submission: by what a cell defines, more than by its label.

What counts is what the learner saw on Run All: of several filled-in definitions, the last one that
stands before the exercise's own tests. Metadata, points, tags and test cells of the submission are
never believed; they only help to say what was repaired.
"""

import ast
import builtins
from dataclasses import dataclass, field

from autograde.cell_code import (
    UNPARSABLE,
    bare,
    bound_names,
    compiles,
    free_names,
    has_star_import,
    runnable,
)
from autograde.intake import Sent, SentCell
from autograde.source import Cell, Chapter, Exercise
from autograde.written import written_answers


@dataclass(slots=True)
class Extracted:
    """What a submission holds for the grader: nothing in it is the learner's word about marks."""

    answers: dict[str, str] = field(default_factory=dict)  # filled-in exercises only
    written: dict[str, str] = field(default_factory=dict)  # filled-in written answers only
    extra: tuple[str, ...] = ()  # the learner's own cells that the answers need, in order
    notes: list[str] = field(default_factory=list)


def extract(sent: Sent, chapter: Chapter) -> Extracted:
    """Answers, written answers and helper cells of one submission, and a line for each repair."""
    found = Extracted(notes=list(sent.notes))
    code = [cell for cell in sent.cells if cell.kind != "markdown" or cell.grade_id]
    cells = {cell.number: runnable(cell, found.notes) for cell in code}
    tests = {test.id: test for one in chapter.exercises.values() for test in one.tests}
    places = _test_places(sent, tests)
    _note_tampering(sent, tests, places, found.notes)
    locked = {number for numbers in places.values() for number in numbers}
    given = {bare(cell.text) for cell in chapter.cells if cell.role in ("setup", "demo")}
    own = {
        number: source
        for number, source in cells.items()
        if number not in locked and bare(source) not in given and source.strip()
    }
    by_number = {cell.number: cell for cell in sent.cells}
    answering: dict[int, str] = {}  # cell number -> source
    for exercise in chapter.exercises.values():
        if (chosen := _choose(exercise, own, by_number, places, found.notes)) is not None:
            found.answers[exercise.id] = answering[chosen] = own[chosen]
    given_lines = _given_lines(chapter)
    helpers = {
        number: _without_given(source, given_lines)
        for number, source in own.items()
        if number not in answering and by_number[number].kind == "code"
    }
    found.extra = _needed(answering, helpers, chapter)
    _note_demo_names(answering, found, chapter)
    found.written = written_answers(sent, chapter, found.notes)
    return found


# Which cell answers an exercise


def _choose(
    exercise: Exercise,
    own: dict[int, str],
    by_number: dict[int, SentCell],
    places: dict[str, list[int]],
    notes: list[str],
) -> int | None:
    """The number of the cell to grade, or None where the exercise was not attempted."""
    stub = bare(exercise.cell.stub_text)

    def blank(source: str) -> bool:
        return bare(source) == stub or _is_stub_of(source, exercise)

    labelled = [n for n in own if by_number[n].grade_id == exercise.id]
    others = [n for n in own if n not in labelled]
    defining = [n for n in own if exercise.defines <= bound_names(own[n])]
    filled = [n for n in defining if not blank(own[n])]
    # Another exercise's cell may hold this answer too, but only when nothing else does.
    loose = [n for n in filled if n in labelled or by_number[n].grade_id is None] or filled
    whole = [n for n in loose if compiles(own[n])] or loose
    if not whole:
        whole = [n for n in labelled if not blank(own[n])]
        if not whole:
            if not labelled and not defining:
                notes.append(f"{exercise.id}: its cell is missing")
            return None
    last_test = max((n for test in exercise.tests for n in places[test.id]), default=None)
    before = [n for n in whole if last_test is None or n < last_test]
    chosen = (before or whole)[-1]
    if len(whole) > 1:
        listed = ", ".join(map(str, whole))
        notes.append(
            f"{exercise.id}: filled in in cells {listed}; graded cell {chosen}, the one that its "
            "tests meet when the notebook runs from top to bottom"
        )
    elif chosen in others and any(cell.grade_id for cell in by_number.values()):
        notes.append(f"{exercise.id}: found in cell {chosen} by the name it defines")
    return chosen


def _is_stub_of(source: str, exercise: Exercise) -> bool:
    """True when every function that the exercise asks for still only raises NotImplementedError."""
    try:
        body = ast.parse(source).body
    except UNPARSABLE:
        return False
    asked = [
        node for node in body if isinstance(node, ast.FunctionDef) and node.name in exercise.defines
    ]
    return bool(asked) and all(_only_raises(node) for node in asked)


def _only_raises(function: ast.FunctionDef) -> bool:
    rest = [
        node
        for node in function.body
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return len(rest) == 1 and ast.unparse(rest[0]).startswith("raise NotImplementedError")


# The learner's own cells


def _needed(answers: dict[int, str], helpers: dict[int, str], chapter: Chapter) -> tuple[str, ...]:
    """The learner's cells that answers need, and the cells that those need; never all of them.

    A scratch cell that no answer needs is not run: it could hang, and it can prove nothing. An
    answer that other answers call is needed by them, so it comes along too.
    """
    known = set(dir(builtins)).union(*(bound_names(cell.text) for cell in chapter.setup))
    asked = set().union(*(exercise.defines for exercise in chapter.exercises.values()))
    wanted = set().union(*(free_names(source) for source in answers.values())) - known
    chosen: set[int] = set()
    while True:
        more = {
            number
            for number, source in helpers.items()
            if bound_names(source) & (wanted - asked)
            or (has_star_import(source) and wanted - asked)
        } | {number for number, source in answers.items() if bound_names(source) & wanted}
        if more <= chosen:
            both = {**helpers, **answers}
            return tuple(both[number] for number in sorted(chosen))
        chosen |= more
        wanted |= set().union(*(free_names(helpers.get(number, "")) for number in more)) - known


def _note_demo_names(answers: dict[int, str], found: Extracted, chapter: Chapter) -> None:
    """Say it when an answer leans on a demo: it runs in the notebook, but not in the grader."""
    demos = [cell for cell in chapter.cells if cell.kind == "code" and cell.role == "demo"]
    shown = set().union(*(bound_names(cell.text) for cell in demos))
    brought = set().union(*map(bound_names, [*found.extra, *(cell.text for cell in chapter.setup)]))
    leaned_on = set().union(*map(free_names, [*answers.values(), *found.extra])) & (shown - brought)
    if leaned_on:
        found.notes.append(
            f"an answer uses {', '.join(sorted(leaned_on))} from a demonstration of the chapter; "
            "those are not run when grading, so copy what is needed into the answer"
        )


def _given_lines(chapter: Chapter) -> set[str]:
    """The statements of the setup and the demos, to tell the learner's own from them."""
    return {
        ast.dump(node)
        for cell in chapter.cells
        if cell.kind == "code" and cell.role in ("setup", "demo") and compiles(cell.text)
        for node in ast.parse(cell.text).body
    }


def _without_given(source: str, given: set[str]) -> str:
    """Only the learner's own lines of a given cell that was added to: a demo is never run."""
    try:
        body = ast.parse(source).body
    except UNPARSABLE:
        return source
    kept = [node for node in body if ast.dump(node) not in given]
    return source if len(kept) == len(body) else "\n".join(map(ast.unparse, kept))


# The submission's own tests: never run, but their places and changes tell something


def _test_places(sent: Sent, tests: dict[str, Cell]) -> dict[str, list[int]]:
    """Where each test stands in the submission, by its label or, where that is gone, its text."""
    by_text = {bare(test.visible_text): ident for ident, test in tests.items()}
    places: dict[str, list[int]] = {ident: [] for ident in tests}
    for cell in sent.cells:
        ident = cell.grade_id if cell.grade_id in tests else by_text.get(bare(cell.source))
        if ident is not None and cell.source.strip():
            places[ident].append(cell.number)
    return places


def _note_tampering(
    sent: Sent, tests: dict[str, Cell], places: dict[str, list[int]], notes: list[str]
) -> None:
    if sent.cells and not any(cell.grade_id for cell in sent.cells):
        notes.append(
            "the notebook has lost its metadata (Colab and some editors drop it); "
            "answers were found by the names they define"
        )
    by_number = {cell.number: cell for cell in sent.cells}
    deleted, edited, revalued = [], [], []
    for ident, test in tests.items():
        here = [by_number[number] for number in places[ident]]
        if not here:
            deleted.append(ident)
        if any(bare(cell.source) != bare(test.visible_text) for cell in here):
            edited.append(ident)
        if any(cell.points not in (None, test.header["points"]) for cell in here):
            revalued.append(ident)
    skips = [str(cell.number) for cell in sent.cells if "skip-execution" in cell.tags]
    for found, what in [
        (deleted, "tests were deleted; the originals were run"),
        (edited, "tests were edited; the originals were run"),
        (revalued, "tests had their points changed; ignored"),
        (skips, "cells carry the tag skip-execution; ignored"),
    ]:
        if found:
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            notes.append(f"{len(found)} {what}: {', '.join(found[:3])}{more}")
