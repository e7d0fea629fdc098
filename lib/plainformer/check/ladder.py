"""The ladder that one result climbs: type, rank, shape, dtype, device, finite, values."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Number

from plainformer.check.describe import (
    SHOWN,
    as_number,
    as_tensor,
    figure,
    kind,
    row_around,
    value_in_words,
)
from plainformer.check.failure import CheckFailed, fail


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An entry passes within atol + rtol * |want|; integers and booleans are always exact."""

    atol: float = 1e-5
    rtol: float = 1e-4


EXACT = Tolerance(0.0, 0.0)


def climb(got, want, what: str, tolerance: Tolerance, axes: str | None = None) -> None:
    """Compare a result, or each leaf of a nested one; raise CheckFailed at the first bad rung."""
    if got is None and want is not None:
        fail("returned-nothing", what)
    if isinstance(want, Mapping):
        _mapping(got, want, what, tolerance)
    elif isinstance(want, (list, tuple)):
        _sequence(got, want, what, tolerance, axes)
    elif as_tensor(want) is not None:
        _tensor(got, as_tensor(want), what, tolerance, axes)
    elif isinstance(want, Number):
        _number(got, want, what, tolerance)
    elif got != want:
        fail("number", what, want=repr(want), got=value_in_words(got))


def agree(got, want, tolerance: Tolerance) -> bool:
    """Whether a result passes the whole ladder."""
    try:
        climb(got, want, "", tolerance)
    except CheckFailed:
        return False
    return True


def same(got, want, tolerance: Tolerance):
    """Entry by entry, as a boolean tensor; NaN equals NaN."""
    if kind(want) != "float":
        return got == want
    # In float64, so that a float32 answer is not judged with float32 rounding of the difference.
    atol, rtol = tolerance.atol, tolerance.rtol
    return got.double().isclose(want.double(), rtol=rtol, atol=atol, equal_nan=True)


def shapes(got, want, what: str, axes: str | None) -> None:
    """The rungs rank and shape, for two shapes."""
    named = axes if axes and len(axes.split()) == len(want) else None
    if len(got) != len(want):
        shown = f" ({named})" if named else ""
        axes_in_words = "1 axis" if len(want) == 1 else f"{len(want)} axes"
        asked = f"{axes_in_words}{shown}, shape {tuple(want)}"
        fail("rank", what, want=asked, got=f"{len(got)} with shape {tuple(got)}")
    if tuple(got) != tuple(want):
        shown = f"{tuple(want)} = ({', '.join(named.split())})" if named else tuple(want)
        fail("shape", what, want=shown, got=tuple(got))


def _mapping(got, want, what, tolerance) -> None:
    if not isinstance(got, Mapping):
        fail("type", what, want="a dictionary", got=value_in_words(got))
    if set(got) != set(want):
        missing = ", ".join(str(key) for key in want if key not in got) or "none"
        extra = ", ".join(str(key) for key in got if key not in want) or "none"
        fail("keys", what, missing=missing, extra=extra)
    for key in want:
        climb(got[key], want[key], f"{what}, {key!r}", tolerance)


def _sequence(got, want, what, tolerance, axes) -> None:
    if not isinstance(got, (list, tuple)):
        fail("type", what, want=f"{len(want)} items in a list or tuple", got=value_in_words(got))
    if _flat(want) and _flat(got):  # a shape, say: shown whole, it needs no index
        if not all(agree(g, w, tolerance) for g, w in zip(got, want, strict=False)) or (
            len(got) != len(want)
        ):
            rule = "number" if len(got) == len(want) else "length"
            fail(rule, what, want=_row(want), got=_row(got))
        return
    if len(got) != len(want):
        fail("length", what, want=f"{len(want)} items", got=len(got))
    for index, (one, right) in enumerate(zip(got, want, strict=True)):
        climb(one, right, f"{what}, item {index}", tolerance, axes)


def _flat(items) -> bool:
    return 1 <= len(items) <= SHOWN and all(isinstance(item, (int, float)) for item in items)


def _row(items) -> str:
    return f"({', '.join(figure(item) for item in items)}{',' if len(items) == 1 else ''})"


def _number(got, want, what, tolerance) -> None:
    got = as_number(got)
    if not isinstance(got, Number):
        fail("type", what, want="a number", got=value_in_words(got))
    if isinstance(want, bool) != isinstance(got, bool):
        asked = "True or False" if isinstance(want, bool) else "a number"
        fail("type", what, want=asked, got=value_in_words(got))
    if isinstance(want, int):
        passed = got == want  # a tolerance would forgive a wrong parameter count
    else:
        near = abs(got - want) <= tolerance.atol + tolerance.rtol * abs(want)
        passed = near or got == want or (got != got and want != want)
    if not passed:
        fail("number", what, want=figure(want), got=figure(got))


def _tensor(got, want, what, tolerance, axes) -> None:
    tensor = as_tensor(got)
    if tensor is None and isinstance(as_number(got), Number) and want.dim() == 0:
        return _number(got, want.item(), what, tolerance)
    if tensor is None:
        fail("type", what, want="a tensor", got=value_in_words(got))
    shapes(tensor.shape, want.shape, what, axes)
    if kind(tensor) != kind(want):
        # 2 and 2.0 are the same answer; 2 for 2.5, or 1 for True, is not.
        numbers = "boolean" not in (kind(tensor), kind(want))
        if not numbers or not same(tensor, want.double(), tolerance).all():
            fail("dtype", what, want=kind(want), got=f"{kind(tensor)} ({tensor.dtype})")
    if tensor.device != want.device:
        fail("device", what, want=want.device, got=tensor.device)
    if kind(want) == kind(tensor) == "float":
        bad = ~tensor.isfinite() & want.isfinite()
        if bad.any():
            values = {"count": int(bad.sum()), "total": bad.numel(), "index": _first(bad)}
            fail("not-finite", what, got=tensor, want=want, **values)
    if kind(tensor) != kind(want):
        return
    different = ~same(tensor, want, tolerance)
    if different.any():
        index = _first(different)
        rows = [f"expected {row_around(want, index)}", f"     got {row_around(tensor, index)}"]
        values = {"count": int(different.sum()), "total": want.numel(), "index": index}
        fail("values", what, rows=rows, got=tensor, want=want, **values)


def _first(mask) -> list[int]:
    return mask.nonzero()[0].tolist()
