"""Names that an exercise asks to do without: a fence for honest people, not a proof."""

import ast


def forbidden(answer: str, names: tuple[str, ...]) -> list[str]:
    """Those of `names` (`softmax`, `torch.softmax`) that the answer calls, reads or imports."""
    if not names:
        return []
    try:
        tree = ast.parse(answer)
    except SyntaxError:
        return []  # running it will say more
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            dotted = ast.unparse(node)
            used |= {dotted, dotted.rsplit(".", 1)[-1]}
        elif isinstance(node, ast.ImportFrom):
            used |= {f"{node.module}.{alias.name}" for alias in node.names}
            used |= {alias.name for alias in node.names}
    return [name for name in names if name in used]
