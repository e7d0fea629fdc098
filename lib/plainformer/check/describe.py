"""Values in a few words, for messages. Also the one place that knows what counts as a tensor."""

import inspect
import traceback
from collections.abc import Mapping
from pathlib import Path

HERE = str(Path(__file__).parent)
LONGEST = 60  # characters of a value's repr
SHOWN = 7  # entries of a row around the place that differs


def as_tensor(value):
    """The value as a detached tensor, or None when it is no tensor."""
    import torch

    return value.detach() if isinstance(value, torch.Tensor) else None


def as_number(value):
    """The Python number in a 0-d tensor or a numpy scalar; anything else as it is."""
    tensor = as_tensor(value)
    if tensor is not None:
        return tensor.item() if tensor.dim() == 0 else value
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
    return value.item() if is_scalar else value


def kind(tensor) -> str:
    """`boolean`, `integer` or `float`: the part of a dtype that an answer must get right."""
    if str(tensor.dtype) == "torch.bool":
        return "boolean"
    return "float" if tensor.is_floating_point() else "integer"


def figure(value) -> str:
    """A number with six digits, anything else as it prints."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def value_in_words(value) -> str:
    """`a float tensor of shape (2, 3)`, or the repr and the type."""
    tensor = as_tensor(value)
    if tensor is not None:
        return f"a {kind(tensor)} tensor of shape {tuple(tensor.shape)}"
    if type(value).__module__ == "torch.return_types":
        names = ", ".join(type(value).__match_args__)
        return f"the pair ({names}) that torch's {type(value).__name__} returns"
    if type(value).__module__ == "numpy" and getattr(value, "shape", ()):
        return f"a numpy array of shape {value.shape}"
    return "None" if value is None else f"{_cut(repr(value))} ({type(value).__name__})"


def row_around(tensor, index: list[int]) -> str:
    """The entry at `index`, and its neighbours on the last axis."""
    if not index:
        return figure(tensor.item())
    row, place = tensor[tuple(index[:-1])], index[-1]
    start = max(0, min(place - SHOWN // 2, len(row) - SHOWN))
    shown = ", ".join(figure(value) for value in row[start : start + SHOWN].tolist())
    before, after = "... " if start else "", " ..." if start + SHOWN < len(row) else ""
    return f"{figure(row[place].item())}  in  [{before}{shown}{after}]"


def case_in_words(case) -> str:
    """The arguments of a call: small vectors and numbers as they are, tensors by shape."""
    if isinstance(case, Mapping):
        return ", ".join(f"{name}={_argument(value)}" for name, value in case.items())
    return ", ".join(map(_argument, case)) or "no arguments"


def crash_in_words(error: Exception) -> str:
    """The error's first and last line, and the line of code outside the checks that raised it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = (
        [lines[0], *lines[1:][-1:]] if lines else []
    )  # einops says what is wrong in its last line
    text = ": ".join([type(error).__name__, *told])
    if last := _line_behind(error):
        text += f"\n  in line {last.lineno} of {last.name}:  {last.line.strip()}"
    return text


def _line_behind(error: Exception) -> traceback.FrameSummary | None:
    """The last line that ran and can be shown: not in a check, a library, or a hidden module."""
    shown = [
        (frame, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if not frame.f_globals.get("__tracebackhide__")
    ]
    frames = [
        frame
        for frame in traceback.StackSummary.extract(iter(shown))
        if not frame.filename.startswith(HERE) and "site-packages" not in frame.filename
    ]
    return next((frame for frame in reversed(frames) if frame.line), None)


def _argument(value) -> str:
    if inspect.isfunction(value):  # its address would be another one each time
        return f"the function {value.__name__}"
    tensor = as_tensor(value)
    if tensor is None:
        return _cut(repr(value))
    if tensor.dim() == 1 and len(tensor) <= SHOWN:
        return f"[{', '.join(figure(entry) for entry in tensor.tolist())}]"
    return f"a {'x'.join(map(str, tensor.shape)) or 'scalar'} {kind(tensor)} tensor"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
