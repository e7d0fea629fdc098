"""Names that an exercise asks to do without: a fence for honest people, not a proof."""

import ast
from collections.abc import Sequence

from autograde.cell_code import has_star_import
from autograde.syntax import defined_names, parse, used_names


def forbidden(answer: str, names: tuple[str, ...], extra: Sequence[str] = ()) -> list[str]:
    """Those of `names` (`softmax`, `torch.softmax`) that the answer reads, calls or imports.

    Helper cells among `extra` count when the answer leads to them, and only then.
    """
    if not names:
        return []
    used = set().union(*map(_mentioned, reached(answer, extra)))
    return [name for name in names if name in used]


def reached(answer: str, extra: Sequence[str]) -> list[str]:
    """The answer, the helper cells whose names it reads, and those that they read.

    What a helper imports with a star is unknown, so such a helper always belongs to it.
    """
    cells = [answer, *filter(has_star_import, extra)]
    rest = [helper for helper in extra if helper not in cells]
    for cell in cells:  # grows while it is walked
        found = [
            helper for helper in rest if _names(defined_names, helper) & _names(used_names, cell)
        ]
        cells += found
        rest = [helper for helper in rest if helper not in found]
    return cells


def _names(read, code: str) -> set[str]:
    try:
        return read(code)
    except (SyntaxError, ValueError):
        return set()  # running it will say more


def _mentioned(code: str) -> set[str]:
    try:
        tree = parse(code)
    except (SyntaxError, ValueError):
        return set()
    # A variable of the learner's own that happens to be called `softmax` is not meant.
    used = used_names(code) - defined_names(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            used |= {ast.unparse(node), node.attr}
        elif isinstance(node, ast.ImportFrom):
            used |= {f"{node.module}.{alias.name}" for alias in node.names}
            used |= {alias.name for alias in node.names}
    return used
