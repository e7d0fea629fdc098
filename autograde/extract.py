"""Find each exercise's answer in a submission: by what a cell defines, more than by its label.

What counts is what the learner saw on Run All: of several filled-in definitions, the last one that
stands before the exercise's own tests. Metadata, points, tags and test cells of the submission are
never believed; they only help to say what was repaired.
"""

import builtins
from dataclasses import dataclass, field

from autograde.cell_code import (
    bare,
    bound_names,
    compiles,
    free_names,
    has_star_import,
    is_stub,
    runnable,
    statements,
)
from autograde.notebook import Sent, SentCell
from autograde.source import Chapter, Exercise
from autograde.source_cells import Cell
from autograde.written import given_texts, plain, written_answers


@dataclass(slots=True)
class Extracted:
    """What a submission holds for the grader: nothing in it is the learner's word about marks."""

    answers: dict[str, str] = field(default_factory=dict)  # filled-in exercises only
    written: dict[str, str] = field(default_factory=dict)  # filled-in written answers only
    extra: tuple[str, ...] = ()  # the learner's own cells that the answers need, in order
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the chapter itself says, read off once for each submission."""

    tests: dict[str, Cell]
    shown: dict[str, str]  # test -> what its visible part does
    asked: dict[str, frozenset[str]]  # exercise -> the names that an answer defines
    stubs: set[str]  # what unfilled exercises do


def _known(chapter: Chapter) -> _Known:
    exercises = chapter.exercises.values()
    tests = {test.id: test for one in exercises for test in one.tests}
    stubs = {one.id: one.cell.stub_text for one in exercises}
    return _Known(
        tests=tests,
        shown={ident: bare(test.visible_text) for ident, test in tests.items()},
        asked={ident: bound_names(text) for ident, text in stubs.items()},
        stubs=set(map(bare, stubs.values())),
    )


def extract(sent: Sent, chapter: Chapter) -> Extracted:
    """Answers, written answers and helper cells of one submission, and a line for each repair."""
    found = Extracted(notes=list(sent.notes))
    known = _known(chapter)
    places = _test_places(sent, known)
    _note_tampering(sent, known, places, found.notes)
    own = _own(sent, chapter, known, places, found.notes)
    by_number = {cell.number: cell for cell in sent.cells}
    answering: dict[int, str] = {}  # cell number -> source
    for exercise in chapter.exercises.values():
        if (chosen := _choose(exercise, known, own, by_number, places, found.notes)) is not None:
            found.answers[exercise.id] = answering[chosen] = own[chosen]
    locked = {number for numbers in places.values() for number in numbers}
    given_lines = _given_lines(chapter)
    helpers = {
        number: _without_given(source, given_lines)
        for number, source in own.items()
        if number not in answering and number not in locked and by_number[number].kind == "code"
    }
    found.extra = _needed(answering, helpers, chapter, known)
    _note_demo_names(answering, found, chapter)
    found.written = written_answers(sent, chapter, found.notes)
    return found


def _own(
    sent: Sent,
    chapter: Chapter,
    known: _Known,
    places: dict[str, list[int]],
    notes: list[str],
) -> dict[int, str]:
    """Cell number -> source, of the cells that may hold something of the learner's."""
    not_theirs = {bare(cell.text) for cell in chapter.cells if cell.role in ("setup", "demo")}
    not_theirs.update(known.shown.values())
    asked = set().union(*known.asked.values())
    texts = zip(chapter.cells, given_texts(chapter), strict=True)
    told = {"", *(text for cell, text in texts if cell.kind == "markdown")}
    locked = {number for numbers in places.values() for number in numbers}
    own = {}
    for cell in sent.cells:
        doubtful = cell.number in locked or (cell.kind == "markdown" and not cell.grade_id)
        # Perhaps an answer that was mislabelled, or turned into text by a slip of the hand.
        if doubtful and not (compiles(cell.source) and bound_names(cell.source) & asked):
            continue
        if plain(cell.source) in told or bare(cell.source) in not_theirs:
            continue
        own[cell.number] = runnable(cell, notes)
    return own


# Which cell answers an exercise


def _choose(
    exercise: Exercise,
    known: _Known,
    own: dict[int, str],
    by_number: dict[int, SentCell],
    places: dict[str, list[int]],
    notes: list[str],
) -> int | None:
    """The number of the cell to grade, or None where the exercise was not attempted."""
    asked = known.asked[exercise.id]
    locked = {number for numbers in places.values() for number in numbers}

    def blank(source: str) -> bool:
        return bare(source) in known.stubs or is_stub(source, asked)

    def unlikely(number: int) -> int:
        """Another cell may hold this answer too, but only when nothing better does."""
        cell = by_number[number]
        if number in locked:
            return 3
        if cell.grade_id == exercise.id:
            return 0
        return 2 if cell.kind != "code" else int(cell.grade_id is not None)

    labelled = [n for n in own if by_number[n].grade_id == exercise.id]
    others = [n for n in own if n not in labelled]
    defining = [n for n in own if asked <= bound_names(own[n])]
    filled = [n for n in defining if not blank(own[n])]
    likeliest = min(map(unlikely, filled), default=0)
    loose = [n for n in filled if unlikely(n) == likeliest]
    whole = [n for n in loose if compiles(own[n])] or loose
    if not whole:
        anyones = frozenset().union(*known.asked.values())
        whole = [n for n in labelled if not blank(own[n]) and not is_stub(own[n], anyones)]
        if not whole:
            if not labelled and not defining:
                notes.append(f"{exercise.id}: its cell is missing")
            return None
    last_test = max((n for test in exercise.tests for n in places[test.id]), default=None)
    before = [n for n in whole if last_test is None or n < last_test]
    chosen = (before or whole)[-1]
    if len(whole) > 1:
        listed = ", ".join(map(str, whole[:5])) + (" and more" if len(whole) > 5 else "")
        notes.append(
            f"{exercise.id}: filled in in cells {listed}; graded cell {chosen}, the one that its "
            "tests meet when the notebook runs from top to bottom"
        )
    elif chosen in others and any(cell.grade_id for cell in by_number.values()):
        notes.append(f"{exercise.id}: found in cell {chosen} by the name it defines")
    if (kind := by_number[chosen].kind) != "code":
        notes.append(f"{exercise.id}: cell {chosen} is a {kind} cell; read as code all the same")
    return chosen


# The learner's own cells


def _needed(
    answers: dict[int, str], helpers: dict[int, str], chapter: Chapter, known: _Known
) -> tuple[str, ...]:
    """The learner's cells that answers need, and the cells that those need; never all of them.

    A scratch cell that no answer needs is not run: it could hang, and it can prove nothing. An
    answer that other answers call is needed by them, so it comes along too.
    """
    there = set(dir(builtins)).union(*(bound_names(cell.text) for cell in chapter.setup))
    asked = set().union(*known.asked.values())
    wanted = set().union(*(free_names(source) for source in answers.values())) - there
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
        wanted |= set().union(*(free_names(helpers.get(number, "")) for number in more)) - there


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
    given = [c for c in chapter.cells if c.kind == "code" and c.role in ("setup", "demo")]
    return {does for cell in given for does, _ in statements(cell.text)}


def _without_given(source: str, given: set[str]) -> str:
    """Only the learner's own lines of a given cell that was added to: a demo is never run."""
    found = statements(source)
    kept = [text for does, text in found if does not in given]
    return source if len(kept) == len(found) else "\n".join(kept)


# The submission's own tests: never run, but their places and changes tell something


def _test_places(sent: Sent, known: _Known) -> dict[str, list[int]]:
    """Where each test stands in the submission, by its label or, where that is gone, its text."""
    by_text = {shown: ident for ident, shown in known.shown.items()}
    places: dict[str, list[int]] = {ident: [] for ident in known.tests}
    for cell in sent.cells:
        ident = cell.grade_id if cell.grade_id in known.tests else by_text.get(bare(cell.source))
        if ident is not None and cell.source.strip():
            places[ident].append(cell.number)
    return places


def _note_tampering(
    sent: Sent, known: _Known, places: dict[str, list[int]], notes: list[str]
) -> None:
    if sent.cells and not any(cell.grade_id for cell in sent.cells):
        notes.append(
            "the notebook has lost its metadata (Colab and some editors drop it); "
            "answers were found by the names they define"
        )
    by_number = {cell.number: cell for cell in sent.cells}
    deleted, edited, revalued = [], [], []
    for ident, test in known.tests.items():
        here = [by_number[number] for number in places[ident]]
        if not here and test.visible_text.strip():  # an overlay's own test was never there
            deleted.append(ident)
        if any(bare(cell.source) != known.shown[ident] for cell in here):
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
