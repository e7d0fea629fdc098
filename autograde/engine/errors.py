"""Exceptions across the border: their type, their text, and the answer's own line behind them."""

import builtins
import re
import traceback

__tracebackhide__ = True  # its frames are in nobody's error message

LONGEST = 4000  # characters of a message


class Far(Exception):
    """An exception of the other side; `name` is its type there."""

    name = "Exception"


def described(error: BaseException) -> list:
    """An exception as plain data. Its `__str__` may be the learner's, and may fail too."""
    try:
        text = str(error)
    except BaseException as second:
        text = f"(its text cannot be made: {type(second).__name__})"
    bases = [
        kind.__name__
        for kind in type(error).__mro__
        if issubclass(kind, Exception) and getattr(builtins, kind.__name__, None) is kind
    ]
    return [type(error).__name__, bases, text[:LONGEST], _line(error)]


def _line(error: BaseException) -> list | None:
    """The last line in a cell of the answer: the name of its cell, number and function."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("<") and frame.filename != "<string>"
    ]
    return [frames[-1].filename, frames[-1].lineno or 0, frames[-1].name] if frames else None


def part_of(error: BaseException, file: str, visible: int | None) -> str:
    """Where a test stood that did not end well: in its "visible" or "hidden" part, or "before" it.

    `visible` is how many lines of the test's code, which runs as `file`, students can read; None
    means all of them. What counts is the line of the cell itself, not of a function it calls.
    """
    steps = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in steps if _of_module(frame.f_code, file)]
    if not lines:
        return "before"
    return "visible" if visible is None or lines[0] <= visible else "hidden"


def _of_module(code, file: str) -> bool:
    return code.co_filename == file and code.co_name == "<module>"


def rebuilt(told) -> Exception:
    """The exception to raise here: of the same built-in type, where it has one."""
    match told:
        case [str(name), list(bases), str(text), place]:
            pass
        case _:
            name, bases, text, place = "Exception", [], "(an error that says nothing)", None
    known = [getattr(builtins, base, None) for base in bases if isinstance(base, str)]
    known = [kind for kind in known if isinstance(kind, type) and issubclass(kind, Exception)]
    base = known[0] if known and known[0] not in NEED_ARGUMENTS else Exception
    shown = name if name.isidentifier() and len(name) <= 60 else "Exception"
    error = type(shown, (Far, base), {"name": shown})(text[:LONGEST])
    match place:
        case [str(file), int(line), str(function)] if _is_cell(file) and 0 < line < 10**6:
            return _raised_at(error, file, line, function)
    return error


NEED_ARGUMENTS = (UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError, KeyError)


def _is_cell(file: str) -> bool:
    return bool(re.fullmatch(r"<[a-z0-9 -]{1,80}>", file)) and not file.startswith("<check")


def _raised_at(error: Exception, file: str, line: int, function: str) -> Exception:
    """The exception with a traceback that ends in the answer's line, as if raised there."""
    code = compile("\n" * (line - 1) + "raise error", file, "exec")
    try:
        exec(code.replace(co_name=function[:80]), {"error": error})
    except Exception as raised:
        return raised
    return error
