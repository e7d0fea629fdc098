"""What a cell of a submission does, read off its code: nothing is run, and nothing raises."""

import ast
import functools
import hashlib
import re
from collections.abc import Callable

from autograde.notebook import SentCell
from autograde.syntax import UNPARSABLE, defined_names, parse, used_names

SHORT = 20_000  # characters; what is longer is parsed again each time, so that memory stays flat

DEFINITION = re.compile(r"^(?:def|class)\s+(\w+)|^(\w+)\s*=", re.MULTILINE)
MAGIC = re.compile(r"^(\s*)([%!].*|\?.*|.*\?)$")


def remembered(function: Callable[..., object]) -> Callable[..., object]:
    """Ask once about each text: most cells of a submission are the chapter's own."""
    quick = functools.lru_cache(maxsize=4096)(function)

    @functools.wraps(function)
    def asked(source, *more):
        return (quick if len(source) <= SHORT else function)(source, *more)

    return asked


@remembered
def free_names(source: str) -> frozenset[str]:
    """Names that a cell takes from elsewhere."""
    try:
        return frozenset(used_names(source) - (bound_names(source) - _changed(source)))
    except UNPARSABLE:
        return frozenset()


def _changed(source: str) -> set[str]:
    """Names that a cell both reads and rebinds, as in `total += 1`: they come from elsewhere."""
    return {
        node.target.id
        for node in ast.walk(parse(source))
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }


def has_star_import(source: str) -> bool:
    return bool(re.search(r"^\s*from\s+\S+\s+import\s+\*", source, re.MULTILINE))


@remembered
def bound_names(source: str) -> frozenset[str]:
    """Names bound at top level; where the cell does not parse, what looks like a definition."""
    try:
        return frozenset(defined_names(source))
    except UNPARSABLE:
        return frozenset(first or second for first, second in DEFINITION.findall(source))


@remembered
def compiles(source: str) -> bool:
    try:
        parse(source)
    except UNPARSABLE:
        return False
    return True


def runnable(cell: SentCell, notes: list[str]) -> str:
    """The cell as plain Python: notebook magics become `pass`, if nothing else stops it parsing."""
    if compiles(cell.source) or cell.kind == "markdown":
        return cell.source
    lines, count = [], 0
    for line in cell.source.split("\n"):
        magic = MAGIC.match(line)
        lines.append(f"{magic[1]}pass  # {magic[2]}" if magic else line)
        count += bool(magic)
    plain = "\n".join(lines)
    if not count or not compiles(plain):
        return cell.source
    notes.append(f"cell {cell.number}: {count} notebook command(s) (% or !) were not run")
    return plain


@remembered
def bare(source: str) -> str:
    """What a cell does, for comparing: comments, blank lines and layout do not count."""
    try:
        told = ast.dump(parse(source))
    except UNPARSABLE:
        told = "\n".join(line.rstrip() for line in source.strip().splitlines())
    return hashlib.sha256(told.encode("utf-8", errors="replace")).hexdigest()


@remembered
def is_stub(source: str, asked: frozenset[str]) -> bool:
    """True when every function that is asked for still only raises NotImplementedError."""
    try:
        body = parse(source).body
        found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name in asked]
        return bool(found) and all(_only_raises(node) for node in found)
    except UNPARSABLE:
        return False


def _only_raises(function: ast.FunctionDef) -> bool:
    rest = [
        node
        for node in function.body
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return len(rest) == 1 and ast.unparse(rest[0]).startswith("raise NotImplementedError")


@remembered
def statements(source: str) -> tuple[tuple[str, str], ...]:
    """Each statement at top level: what it does, for comparing, and its text."""
    try:
        return tuple((ast.dump(one), ast.unparse(one)) for one in parse(source).body)
    except UNPARSABLE:
        return ()
