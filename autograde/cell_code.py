"""What a cell of a submission does, read off its code: nothing is run, and nothing raises."""

import ast
import re

from autograde.intake import SentCell
from autograde.source import defined_names, used_names

UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
DEFINITION = re.compile(r"^(?:def|class)\s+(\w+)|^(\w+)\s*=", re.MULTILINE)
MAGIC = re.compile(r"^(\s*)([%!].*|\?.*|.*\?)$")


def free_names(source: str) -> set[str]:
    """Names that a cell takes from elsewhere."""
    try:
        return used_names(source) - (defined_names(source) - _changed(source))
    except UNPARSABLE:
        return set()


def _changed(source: str) -> set[str]:
    """Names that a cell both reads and rebinds, as in `total += 1`: they come from elsewhere."""
    return {
        node.target.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }


def has_star_import(source: str) -> bool:
    return bool(re.search(r"^\s*from\s+\S+\s+import\s+\*", source, re.MULTILINE))


def bound_names(source: str) -> set[str]:
    """Names bound at top level; where the cell does not parse, what looks like a definition."""
    try:
        return defined_names(source)
    except UNPARSABLE:
        return {first or second for first, second in DEFINITION.findall(source)}


def compiles(source: str) -> bool:
    try:
        ast.parse(source)
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


def bare(source: str) -> str:
    """What a cell does, for comparing: comments, blank lines and layout do not count."""
    try:
        return ast.dump(ast.parse(source))
    except UNPARSABLE:
        return "\n".join(line.rstrip() for line in source.strip().splitlines())
