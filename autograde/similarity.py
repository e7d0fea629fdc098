"""Which answers of a chapter are written alike: it informs a teacher, and never scores.

Two answers agree when their syntax trees are the same once comments, docstrings and annotations
are gone and every name that the learner gave is replaced by its number in order. A short exercise
has few ways to be written: what the stub, the solution and the course's known right answers hold
never counts, and a pair is listed only when it agrees in several answers or in a long one.
A copy with lines moved or expressions rewritten is not found: silence proves nothing.
"""

import ast
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from autograde.audit import load_answers
from autograde.chapters import Course
from autograde.plan import ClassFolder
from autograde.source import Chapter
from autograde.syntax import UNPARSABLE, parse

SEVERAL = 3  # exercises in which a pair agrees
SMALL, LONG = 25, 150  # nodes of a tree: below SMALL nothing counts, from LONG one answer is enough
# Where a name that an answer gives stands in the tree.
GIVES = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.FunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
}
CAUTION = (
    "Short exercises have few ways to be written, and people may work together or share a source. "
    "This is a reason to read both answers and to ask, never a proof; no score depends on it."
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two students and the exercises they wrote alike: exercise -> nodes of the shared tree."""

    students: tuple[str, str]
    alike: dict[str, int]


@dataclass(frozen=True, slots=True)
class Similarity:
    """What was found in one chapter, and what could not be compared."""

    slug: str
    pairs: tuple[Pair, ...]
    left_out: tuple[tuple[str, str], ...]  # student, exercise: not Python

    def as_json(self) -> dict:
        pairs = [{"students": list(one.students), "alike": one.alike} for one in self.pairs]
        left_out = [list(one) for one in self.left_out]
        return {"chapter": self.slug, "pairs": pairs, "left_out": left_out, "caution": CAUTION}

    def __str__(self) -> str:
        lines = [f"{self.slug}: answers written alike", CAUTION]
        lines += [
            f"Listed: the same tree in {SEVERAL} answers, or in one of {LONG} nodes, after names, "
            "comments, docstrings and annotations are set aside; in brackets its nodes.",
            "",
        ]
        for pair in self.pairs:
            told = ", ".join(f"{ident} ({size})" for ident, size in pair.alike.items())
            lines.append(f"{' and '.join(pair.students)}: {told}")
        if not self.pairs:
            lines.append("no pair to list")
        for student, ident in self.left_out:
            lines.append(f"left out: {student}, {ident}: it is not Python that can be read")
        return "\n".join(lines)


def normal(source: str) -> tuple[str, int] | None:
    """The tree without what a copier changes first, and its nodes; None if it cannot be read."""
    try:
        tree = parse(source)
        for node in ast.walk(tree):
            _strip(node)
        _rename(tree)
        return ast.dump(tree), sum(1 for _ in ast.walk(tree))
    except UNPARSABLE:
        return None


def _strip(node: ast.AST) -> None:
    for attribute in ("annotation", "returns"):
        if hasattr(node, attribute) and not isinstance(node, ast.AnnAssign):
            setattr(node, attribute, None)
    for part in ("body", "orelse", "finalbody"):
        if isinstance(block := getattr(node, part, None), list):
            kept = [new for old in block if (new := _statement(old)) is not None]
            setattr(node, part, kept or [ast.Pass()] * bool(block))


def _statement(node: ast.AST) -> ast.AST | None:
    """A statement without its annotation; None for a docstring or a bare annotation."""
    if isinstance(node, ast.AnnAssign):
        return node.value and ast.Assign(targets=[node.target], value=node.value)
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return None if docstring and isinstance(node.value.value, str) else node


def _rename(tree: ast.AST) -> None:
    """Names that the answer gives become numbers; those it is given, such as `torch`, stay."""
    nodes = list(ast.walk(tree))
    own: dict[str, str] = {}
    for node in nodes:
        name = getattr(node, GIVES.get(type(node), ""), None)
        loaded = isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
        if name is not None and not loaded:
            own.setdefault(name, f"_{len(own)}")
    for node in nodes:
        if (field := GIVES.get(type(node))) and (name := getattr(node, field)) in own:
            setattr(node, field, own[name])


def similarity(
    slug: str, answers: Mapping[str, Mapping[str, str]], given: Mapping[str, Iterable[str]]
) -> Similarity:
    """Compare everybody's answers (student -> exercise -> source), beyond what was `given`."""
    known = {ident: {normal(text) for text in texts} for ident, texts in given.items()}
    shapes: dict[str, dict[str, tuple[str, int]]] = {}
    left_out = []
    for student, sources in answers.items():
        shapes[student] = {}
        for ident, source in sources.items():
            if (shape := normal(source)) is None:
                left_out.append((student, ident))
            elif shape not in known.get(ident, ()) and shape[1] >= SMALL:
                shapes[student][ident] = shape
    pairs = []
    for first, second in combinations(sorted(shapes), 2):
        mine, theirs = shapes[first], shapes[second]
        alike = {one: mine[one][1] for one in mine if mine[one] == theirs.get(one)}
        if len(alike) >= SEVERAL or max(alike.values(), default=0) >= LONG:
            pairs.append(Pair((first, second), alike))
    pairs.sort(key=lambda pair: -sum(pair.alike.values()))
    return Similarity(slug, tuple(pairs), tuple(left_out))


def of_class(folder: ClassFolder, chapter: Chapter, course: Course) -> Similarity:
    """The similarity of all graded answers to a chapter, as the autograded notebooks hold them."""
    try:
        right = load_answers(chapter.slug, course)[0]
    except FileNotFoundError:
        right = {}
    given = {
        ident: [one.cell.stub_text, one.cell.solution_text, *right.get(ident, {}).values()]
        for ident, one in chapter.exercises.items()
    }
    answers = {}
    for student in folder.students(chapter.slug):
        path = folder.autograded(student, chapter.slug)
        if path.exists():
            answers[student] = _answers(path.read_text(encoding="utf-8"), set(given))
    return similarity(chapter.slug, answers, given)


def _answers(notebook: str, exercises: set[str]) -> dict[str, str]:
    found = {}
    for cell in json.loads(notebook)["cells"]:
        ident = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if ident in exercises:
            found[ident] = "".join(cell["source"])
    return found
