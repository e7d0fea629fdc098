"""The library reference: signatures as they stand in the source, docstrings as Markdown readers
write them.

Autodoc prints an annotation from the live object, which turns `Float[Tensor, "t d_head"]` into a
class of jaxtyping's with a long name. The source is shorter and says what we mean.
"""

import ast
import inspect
import re
import textwrap

# Lines of a docstring that begin a labelled note of their own.
NOTES = re.compile(r"^(Source|Paper to code|Units): (.*)$")


def setup(app):
    app.connect("autodoc-process-signature", signature_from_source)
    app.connect("autodoc-process-docstring", docstring_to_rst)


def signature_from_source(app, what, name, obj, options, signature, returns):
    """`(q: Float[Tensor, 't d_head']) -> ...` for whatever has Python source."""
    function = inspect.unwrap(obj.__init__ if what == "class" else obj) if callable(obj) else None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (TypeError, OSError, SyntaxError):  # built in, generated (a dataclass), or no function
        return _without_modules(signature), _without_modules(returns)
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return _without_modules(signature), _without_modules(returns)
    for part in ast.walk(node):  # jaxtyping asks for " b" where "b" would be taken for a name
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            part.value = part.value.strip()
    if what in ("class", "method") and node.args.args and not _is_static(node):
        del node.args.args[0]  # self or cls
    result = ast.unparse(node.returns) if node.returns is not None and what != "class" else None
    return f"({ast.unparse(node.args)})", result


def _is_static(node) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)


def _without_modules(text: str | None) -> str | None:
    return text and re.sub(r"\b(?:jaxtyping|torch|pathlib|collections\.abc)\.", "", text)


def docstring_to_rst(app, what, name, obj, options, lines: list[str]) -> None:
    lines[:] = to_rst(lines)


def to_rst(lines: list[str]) -> list[str]:
    """Formulas in dollars, notes such as `Source: ...`, doctests right under a sentence, and
    paragraphs indented by four, which are shown as they stand."""
    lines = _formulas_in_one_line(lines)
    result: list[str] = []
    in_note = in_doctest = in_literal = False
    for before, line in zip(["", *lines], lines, strict=False):
        text = line.strip()
        if in_literal and (not text or line.startswith("    ")):
            result.append(line)
            continue
        in_literal = line.startswith("    ") and not (before.strip() or in_doctest)
        if in_literal:
            result += ["", "::", "", line]
        elif formula := re.fullmatch(r"\$\$(.+)\$\$", text):
            result += ["", ".. math::", "", f"   {formula[1].strip()}", ""]
        elif note := NOTES.match(text):
            result += [*([] if in_note else [""]), f":{note[1]}: {_inline(note[2])}"]
            in_note = True
            continue
        elif text.startswith((">>>", "Raises ")) and not in_doctest:
            result += ["", line if text.startswith(">>>") else _inline(line)]
            in_doctest = text.startswith(">>>")
        elif in_note and text and not in_doctest:
            result.append(f"   {_inline(text)}")  # the note goes on
            continue
        else:
            in_doctest = in_doctest and bool(text)
            result.append(line if in_doctest else _inline(line))
        in_note = False
    return [*result, ""]


def _formulas_in_one_line(lines: list[str]) -> list[str]:
    joined: list[str] = []
    for line in lines:
        last = joined[-1].strip() if joined else ""
        is_open = last.startswith("$$") and (last == "$$" or not last.endswith("$$"))
        if is_open:
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    return joined


def _inline(text: str) -> str:
    """Formulas between dollars; outside of code, signs that reStructuredText would read."""
    text = re.sub(r"(?<!\$)\$([^$`]+)\$(?!\$)", r":math:`\1`", text)
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"\||(?<=\w)_(?=\W|$)", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)
