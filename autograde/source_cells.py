"""The cells of a chapter's source, each with its header checked, and the texts readers see."""

import re
from dataclasses import dataclass
from pathlib import Path

import jupytext

from autograde.syntax import parse

ROLES = {"setup", "demo", "exercise", "test", "written", "hint"}
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

    @property
    def visible_lines(self) -> int | None:
        """How many lines of `solution_text` run before anything hidden; None: nothing is hidden.

        A statement that a hidden region cuts in two counts as hidden.
        """
        if HIDDEN[0] not in self.text:
            return None
        lines = self.text.splitlines()
        start = next(number for number, line in enumerate(lines) if HIDDEN[0] in line)
        shown = len(_without_markers("\n".join(lines[:start])).splitlines())
        try:
            ends = [node.end_lineno for node in parse(self.solution_text).body]
        except SyntaxError:  # magics: nothing is known of its lines
            return 0
        return max((end for end in ends if end <= shown), default=0)


def read_cells(path: Path) -> tuple[Cell, ...]:
    """The cells of a MyST file. Raises SourceError with file, cell and cure."""
    notebook = jupytext.read(path, fmt="md:myst")
    return tuple(_cell(raw, index, path) for index, raw in enumerate(notebook.cells))


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
