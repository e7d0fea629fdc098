"""Hidden tests of one class, from a folder that is never committed.

`--overlay DIR` names it, or `overlay` in the class's course.toml.

Whoever reads this repository reads its hidden tests. A class whose marks count is judged by others:
`DIR/02-attention.md` is MyST like a chapter's source, of test cells only. A cell with the id of a
known test takes the place of its hidden part, and runs after its visible part; a cell with a new id
is one more test of the exercise that its id begins with. Points of a known test stay as they are.
"""

from dataclasses import replace
from pathlib import Path

from autograde.chapters import Course, UsageError
from autograde.source_cells import HIDDEN, Cell, SourceError, read_cells


class NoOverlay(UsageError):
    """The overlay's folder does not exist, or has a file for no chapter."""


def add_overlay(parser) -> None:
    parser.add_argument(
        "--overlay", metavar="DIR", type=Path, help="a folder with hidden tests of your own"
    )


def with_overlay(course: Course, folder: Path | None) -> Course:
    """The course with the tests of this folder. Raises NoOverlay for what can't be meant."""
    if folder is None:
        return course
    if not folder.is_dir():
        raise NoOverlay(f"own hidden tests: there is no folder {folder}")
    files = {path.stem for path in folder.glob("*.md")} - {"README"}
    if stray := sorted(files - set(course.slugs())):
        raise NoOverlay(
            f"own hidden tests: {folder} has files for no chapter: {', '.join(stray)}; "
            f"{course.written()}"
        )
    if not files:
        raise NoOverlay(
            f"own hidden tests: {folder} has no file; one is named like {course.slugs()[0]}.md"
        )
    return replace(course, overlay=folder.resolve())


def lay_over(cells: tuple[Cell, ...], path: Path) -> tuple[Cell, ...]:
    """A chapter's cells with the tests of an overlay's file among them. Raises SourceError."""
    whole, known = list(cells), {cell.id: cell for cell in cells if cell.role == "test"}
    for own in read_cells(path):
        if own.kind == "markdown":
            continue
        if own.role != "test":
            raise SourceError(
                f"{path}, cell {own.index}: an overlay has test cells and Markdown only"
            )
        if own.id in known:
            theirs = known.pop(own.id)
            whole[whole.index(theirs)] = _in_place(theirs, own, path)
        else:
            whole.append(_all_hidden(replace(own, index=len(whole))))
    return tuple(whole)


def _all_hidden(own: Cell) -> Cell:
    """A test that students never saw, its docstring included."""
    return replace(own, text="\n".join([HIDDEN[0], own.solution_text, HIDDEN[1]]))


def _in_place(theirs: Cell, own: Cell, path: Path) -> Cell:
    """The known test with another hidden part."""
    mine, promised = own.header["points"], theirs.header["points"]
    if mine != promised:
        raise SourceError(
            f"{path}: {own.id} has {mine:g} points, and {promised:g} in the chapter, which "
            "students have read; write the same"
        )
    if theirs.header.get("judge") == "inproc":
        raise SourceError(
            f"{path}: {own.id} is judged in the answer's own process and can hide nothing from it; "
            "give your test another id"
        )
    return replace(
        theirs, text="\n".join([theirs.visible_text, HIDDEN[0], own.solution_text, HIDDEN[1]])
    )
