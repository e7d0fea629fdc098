"""Read `solutions/NN-slug.md`, the one source of a chapter, into cells and exercises.

Every promise that a header makes is checked here, so that a slip in the source is an error with a
line of advice and not a lost mark: unknown keys, a test without points, an exercise without tests.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import jupytext

from autograde.chapters import Course
from autograde.syntax import defined_names, used_names

ROLES = {"setup", "demo", "exercise", "test", "written", "hint"}
TIERS = ("core", "more", "deep")
KINDS = {"write", "bug", "test", "predict", "people-say", "figure", "read", "written"}
OURS = {
    "role", "exercise", "test", "points", "tier", "kind", "title", "minutes", "needs", "judge",
    "forbid", "hint",
}  # fmt: skip
JUPYTER = {"tags", "mystnb"}
STUB = "raise NotImplementedError  # YOUR CODE HERE"

# nbgrader's markers. It looks for them anywhere in a line, and so do we.
SOLUTION = ("### BEGIN SOLUTION", "### END SOLUTION")
HIDDEN = ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


class SourceError(ValueError):
    """Something in a chapter's source breaks a rule; the message names file, cell and cure."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the source, with the three texts that different readers see."""

    kind: str  # "code" or "markdown"
    text: str
    role: str  # one of ROLES, or "text" for plain Markdown
    id: str  # the grade id of an exercise, test or written cell; else derived from its place
    header: dict
    index: int

    @property
    def solution_text(self) -> str:
        """The text without nbgrader's markers: solution in, hidden tests in."""
        return _without_markers(self.text)

    @property
    def stub_text(self) -> str:
        """The text that students get: solutions replaced by the stub, hidden tests out."""
        return cut(cut(self.text, HIDDEN, None), SOLUTION, STUB)

    @property
    def visible_text(self) -> str:
        """A test without its hidden part."""
        return cut(self.text, HIDDEN, None)


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


def load(slug: str, root: Path | None = None) -> Chapter:
    """Read and check one chapter. Raises SourceError with file, cell and cure."""
    course = Course(root) if root else Course()
    path = course.source(slug)
    if not path.exists():
        raise SourceError(f"{path} does not exist; a chapter's source is solutions/NN-slug.md")
    notebook = jupytext.read(path, fmt="md:myst")
    cells = tuple(_cell(raw, index, path) for index, raw in enumerate(notebook.cells))
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


def _cell(raw, index: int, path: Path) -> Cell:
    header = dict(raw.metadata)
    place = f"{path.name}, cell {index} ({raw.source.strip().splitlines()[:1]})"
    if unknown := set(header) - OURS - JUPYTER:
        raise SourceError(f"{place}: unknown header keys {sorted(unknown)}; known: {sorted(OURS)}")
    default = "demo" if raw.cell_type == "code" else "text"
    role = header.get("role", default)
    if role not in ROLES | {"text"}:
        raise SourceError(f"{place}: role is {role!r}, one of {sorted(ROLES)} is needed")
    if role in ("exercise", "written", "hint") and "exercise" not in header:
        raise SourceError(f"{place}: a cell of role {role} names its exercise: `exercise: NN-...`")
    if role == "test" and "test" not in header:
        raise SourceError(f"{place}: a test cell names itself: `test: NN-exercise-what`")
    if role in ("test", "written") and not header.get("points", 0) > 0:
        raise SourceError(f"{place}: a {role} cell needs points above 0")
    if JUPYTER & set(header) and role not in ("demo", "setup"):
        raise SourceError(f"{place}: tags and mystnb belong to demo cells only")
    ident = {"exercise": header.get("exercise"), "written": header.get("exercise")}.get(role)
    ident = header.get("test") if role == "test" else ident
    number = path.stem.split("-")[0]
    ident = f"{number}-setup" if role == "setup" else ident
    if ident and not re.fullmatch(rf"{number}-[a-z0-9-]+", ident):
        raise SourceError(
            f"{place}: the id {ident!r} is not {number}- and letters, digits, hyphens"
        )
    if role == "test" and not raw.source.lstrip().startswith('"""'):
        raise SourceError(f"{place}: a test cell starts with a docstring saying what it checks")
    if header.get("judge", "split") not in ("split", "inproc") or ("judge" in header) > (
        role == "test"
    ):
        raise SourceError(f"{place}: `judge:` is split or inproc, on a test cell")
    if header.get("judge") == "inproc" and HIDDEN[0] in raw.source:
        raise SourceError(
            f"{place}: a test that is judged in the answer's own process can hide nothing from it; "
            "take out `judge: inproc` or the hidden part"
        )
    if role == "exercise" and SOLUTION[0] not in raw.source:
        raise SourceError(f"{place}: an exercise needs a {SOLUTION[0]} region")
    return Cell(raw.cell_type, raw.source, role, ident or f"{number}-cell-{index}", header, index)


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


def cut(text: str, markers: tuple[str, str], replacement: str | None) -> str:
    """Replace each marked region, by one line at its indentation or by nothing."""
    kept, inside = [], False
    for line in text.splitlines():
        if markers[0] in line:
            inside = True
            if replacement is not None:
                kept.append(re.match(r"\s*", line)[0] + replacement)
        elif markers[1] in line:
            inside = False
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def _without_markers(text: str) -> str:
    marks = (*SOLUTION, *HIDDEN)
    return "\n".join(line for line in text.splitlines() if not any(mark in line for mark in marks))
