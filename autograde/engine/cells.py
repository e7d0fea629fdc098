"""Run the cells of a notebook without one: their lines, their errors, their random numbers."""

import ast
import asyncio
import hashlib
import inspect
import linecache
import random
import traceback

CHECK = "check "  # before a test's id, in the name of its pretended file


def execute(code: str, name: str, space: dict, *, quoted: bool = True) -> None:
    """Run one cell. `quoted` lets messages show its lines: never those of a hidden test."""
    file = f"<{name}>"
    try:
        compiled = compile(code, file, "exec")
    except SyntaxError:
        code, compiled = _as_notebooks_do(code, file)
    if quoted:
        remember(code, name)
    result = eval(compiled, space)
    if inspect.iscoroutine(result):
        asyncio.run(result)


def _as_notebooks_do(code: str, file: str):
    """Magics (%, !, a trailing ?) and `await` at the top level, which plain Python refuses."""
    from IPython.core.inputtransformer2 import TransformerManager

    code = TransformerManager().transform_cell(code)
    return code, compile(code, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def remember(code: str, name: str) -> None:
    """Let messages quote the lines of a cell."""
    file = f"<{name}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)


def fresh_space() -> dict:
    """The names that a notebook's first cell finds."""
    return {"__name__": "__main__", "__builtins__": __builtins__, "get_ipython": _SilentShell}


class _SilentShell:
    """Stands in for IPython's shell in a learner's magics: accepts every call, does nothing."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def in_words(error: BaseException) -> str:
    """The error and the learner's line behind it; never a line of a test, which may be hidden."""
    text = f"{type(error).__name__}: {text_of(error)}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("<") and not frame.filename.startswith(f"<{CHECK}")
    ]
    if frames:
        text += f"\n  in line {frames[-1].lineno} of {frames[-1].filename}: {frames[-1].line}"
    return text


def text_of(error: BaseException) -> str:
    """Its message; a learner's own `__str__` may fail."""
    try:
        return str(error)
    except BaseException as second:
        return f"(its text cannot be made: {type(second).__name__})"


def seed_everything(words: str) -> None:
    """The same random numbers in every run of the same words, others for other words."""
    import numpy
    import torch

    seed = int(hashlib.sha256(words.encode()).hexdigest()[:8], 16)
    random.seed(seed)
    numpy.random.seed(seed)
    torch.default_generator.manual_seed(seed)  # manual_seed of torch itself walks stacks: 12 ms
