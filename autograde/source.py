"""Read `solutions/NN-slug.md`, the one source of a chapter, into cells and exercises.

Every promise that a header makes is checked, here or in `source_cells`, so that a slip in the
source is an error with a line of advice and not a lost mark: unknown keys, a test without points,
an exercise without tests.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from autograde.chapters import Course
from autograde.overlay import lay_over
from autograde.source_cells import Cell, SourceError, read_cells
from autograde.syntax import defined_names, used_names

TIERS = ("core", "more", "deep")
KINDS = {"write", "bug", "test", "predict", "people-say", "figure", "read", "written"}


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise: the cell to fill in, the tests that judge it, the hints that help."""

    id: str
    cell: Cell
    tests: tuple[Cell, ...]
    hints: tuple[Cell, ...]
    tier: str
    kind: str
    title: str
    minutes: int
    needs: tuple[str, ...]
    forbid: tuple[str, ...]

    @property
    def points(self) -> float:
        return sum(test.header["points"] for test in self.tests)

    @property
    def defines(self) -> set[str]:
        """The functions and names that a filled-in cell defines."""
        return defined_names(self.cell.stub_text)


@dataclass(frozen=True, slots=True)
class Chapter:
    """A whole chapter. `setup` is what answers and tests may rely on besides themselves."""

    slug: str
    path: Path
    title: str
    cells: tuple[Cell, ...]
    exercises: dict[str, Exercise]
    setup: tuple[Cell, ...] = field(default=())
    written: tuple[Cell, ...] = field(default=())


def load(slug: str, course: Course | None = None) -> Chapter:
    """Read and check one chapter. Raises SourceError with file, cell and cure."""
    course = course or Course()
    path = course.source(slug)
    if not path.exists():
        raise SourceError(f"{path} does not exist; a chapter's source is solutions/NN-slug.md")
    cells = read_cells(path)
    if own := course.own_tests(slug):
        cells = lay_over(cells, own)
    ids = [cell.id for cell in cells]
    for cell in cells:
        if ids.count(cell.id) > 1:
            raise SourceError(f"{path.name}: the id {cell.id!r} is used twice; ids are unique")
    exercises = {cell.id: _exercise(cell, cells, path) for cell in cells if cell.role == "exercise"}
    claimed = {test.id for exercise in exercises.values() for test in exercise.tests}
    for cell in cells:
        if cell.role == "test" and cell.id not in claimed:
            raise SourceError(f"{path.name}: test {cell.id!r} continues no exercise id")
    chapter = Chapter(
        slug=slug,
        path=path,
        title=_title(cells, path),
        cells=cells,
        exercises=exercises,
        setup=tuple(cell for cell in cells if cell.role == "setup"),
        written=tuple(cell for cell in cells if cell.role == "written"),
    )
    _check_names(chapter)
    return chapter


def _exercise(cell: Cell, cells: tuple[Cell, ...], path: Path) -> Exercise:
    exercise_ids = [other.id for other in cells if other.role == "exercise"]
    tests = [t for t in cells if t.role == "test" and _owner(t.id, exercise_ids) == cell.id]
    if not tests:
        raise SourceError(f"{path.name}: exercise {cell.id!r} has no test")
    header = cell.header
    if header.get("tier") not in TIERS:
        raise SourceError(f"{path.name}: exercise {cell.id!r} needs `tier:`, one of {TIERS}")
    if header.get("kind", "write") not in KINDS:
        raise SourceError(f"{path.name}: exercise {cell.id!r}: kind is one of {sorted(KINDS)}")
    for key in ("title", "minutes"):
        if key not in header:
            raise SourceError(f"{path.name}: exercise {cell.id!r} needs `{key}:`")
    return Exercise(
        id=cell.id,
        cell=cell,
        tests=tuple(tests),
        hints=tuple(c for c in cells if c.role == "hint" and c.header["exercise"] == cell.id),
        tier=header["tier"],
        kind=header.get("kind", "write"),
        title=header["title"],
        minutes=header["minutes"],
        needs=tuple(header.get("needs", ())),
        forbid=tuple(header.get("forbid", ())),
    )


def _owner(test_id: str, exercise_ids: list[str]) -> str | None:
    owners = [one for one in exercise_ids if test_id.startswith(one + "-")]
    return max(owners, key=len, default=None)


def _title(cells: tuple[Cell, ...], path: Path) -> str:
    for cell in cells:
        if cell.kind == "markdown" and (match := re.search(r"^# (.+)$", cell.text, re.MULTILINE)):
            return match[1].strip()
    raise SourceError(f"{path.name}: there is no `# Title` line")


def _check_names(chapter: Chapter) -> None:
    """Demos define nothing that answers or tests read, and read nothing that answers define."""
    answers = {name for one in chapter.exercises.values() for name in one.defines}
    read = set()
    for exercise in chapter.exercises.values():
        for cell in (exercise.cell, *exercise.tests):
            read |= used_names(cell.solution_text) - defined_names(cell.solution_text)
    for cell in chapter.cells:
        if cell.role != "demo" or cell.kind != "code":
            continue
        place = f"{chapter.path.name}, demo cell {cell.index}"
        if clash := sorted(defined_names(cell.text) & (read | answers)):
            raise SourceError(
                f"{place} defines {', '.join(clash)}, which an exercise or a test uses; "
                f"give the demo's variable another name"
            )
        if clash := sorted(used_names(cell.text) & answers):
            raise SourceError(
                f"{place} uses {', '.join(clash)}, which a student defines; use the library's"
            )
