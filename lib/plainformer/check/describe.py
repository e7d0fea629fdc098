"""Values in a few words, for messages. Also the one place that knows what counts as a tensor."""

import linecache
import traceback
from collections.abc import Mapping
from pathlib import Path

HERE = str(Path(__file__).parent)
LONGEST = 60  # characters of a value's repr
SHOWN = 7  # entries of a row around the place that differs


def as_tensor(value):
    """The value as a detached tensor, or None when it is neither a tensor nor a numpy array."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach()
    if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
        return torch.as_tensor(value)
    return None


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
    """The error's first line, and the line of code outside the checks that raised it."""
    message = str(error).strip()
    text = f"{type(error).__name__}: {message.splitlines()[0]}" if message else type(error).__name__
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(HERE) and "site-packages" not in frame.filename
    ]
    if frames:
        last = frames[-1]
        line = (last.line or linecache.getline(last.filename, last.lineno or 0)).strip()
        text += f"\n  in line {last.lineno} of {last.name}:  {line}"
    return text


def _argument(value) -> str:
    tensor = as_tensor(value)
    if tensor is None:
        return _cut(repr(value))
    if tensor.dim() == 1 and len(tensor) <= SHOWN:
        return f"[{', '.join(figure(entry) for entry in tensor.tolist())}]"
    return f"a {'x'.join(map(str, tensor.shape)) or 'scalar'} {kind(tensor)} tensor"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
