"""The checks: call an answer, or take its results, and send them up the ladder."""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence

from plainformer.check.describe import as_tensor, case_in_words, crash_in_words, value_in_words
from plainformer.check.failure import CheckFailed, fail
from plainformer.check.ladder import EXACT, Tolerance, agree, climb, same, shapes
from plainformer.messages import MISTAKES

# Rungs on which a known mistake may be named: there is a result to compare with the mistake's.
NAMEABLE = {"keys", "length", "rank", "shape", "dtype", "not-finite", "values", "number"}


def calls(
    fn, cases, want, what, *, unlike=None, axes=None, atol=1e-5, rtol=1e-4, tell=True
) -> None:
    """Call `fn` on every case and compare with `want`: a list of results, or a reference function.

    A case is a tuple of arguments, or a dict of keyword arguments. `unlike` maps the names of known
    mistakes to wrong functions, or to lists of wrong results. `axes` names the axes of a result.
    With `tell=False` the message keeps the right values to itself.
    Each function gets copies of its own, so nobody can spoil the inputs of another.
    """
    if not callable(fn):
        fail("undefined", what, got=value_in_words(fn))
    wanted = [_call(want, case) for case in cases] if callable(want) else list(want)
    if len(wanted) != len(cases):
        raise TypeError(f"{len(cases)} cases need as many results in `want`, got {len(wanted)}")
    tolerance = Tolerance(atol, rtol)
    for number, (case, right) in enumerate(zip(cases, wanted, strict=True), start=1):
        try:
            got, touched = _watched(fn, case, what)
            _climb_untouched(got, right, touched, what, tolerance, axes)
        except CheckFailed as failed:
            of = f"  (case {number} of {len(cases)})" if len(cases) > 1 else ""
            if not tell:
                failed.untold()
            failed.rows.append(f"called with {case_in_words(case)}{of}")
            if unlike and failed.rule in NAMEABLE:
                _name(failed, _tried(fn, cases), wanted, _results(unlike, cases), tolerance)
            raise


def close(got, want, what, *, unlike=None, atol=1e-5, rtol=1e-4, tell=True) -> None:
    """Compare numbers, tensors, or nested lists and dicts of them, within atol + rtol * |want|.

    With `unlike` (mistake -> wrong results), `got` and `want` are lists of at least two results:
    one agreement may be chance. With `tell=False` the message keeps the right values to itself.
    """
    if unlike and (not isinstance(want, (list, tuple)) or len(want) < 2):
        raise TypeError("unlike needs at least two results in a list, to name a mistake safely")
    tolerance = Tolerance(atol, rtol)
    try:
        climb(got, want, what, tolerance)
    except CheckFailed as failed:
        if not tell:
            failed.untold()
        if unlike and failed.rule in NAMEABLE and isinstance(got, (list, tuple)):
            _name(failed, list(got), list(want), unlike, tolerance)
        raise


def equal(got, want, what) -> None:
    """Compare exactly: integers, booleans, strings, shapes, and nested lists and dicts of them."""
    climb(got, want, what, EXACT)


def shape(got, axes: str, *, what: str = "the result", **sizes: int) -> None:
    """Compare a tensor's shape with named axes: `shape(scores, "t s", t=5, s=7)`."""
    tensor = as_tensor(got)
    if tensor is None:
        rule = "returned-nothing" if got is None else "type"
        fail(rule, what, want="a tensor", got=value_in_words(got))
    shapes(tensor.shape, tuple(sizes[axis] for axis in axes.split()), what, axes)


def raises(exception: type[Exception], fn, *args, what: str, says: str = "") -> None:
    """Check that a call raises `exception` (or a subclass), with `says` in its message."""
    try:
        got = fn(*args)
    except NotImplementedError as error:
        fail("not-written", what, cause=error)
    except exception as error:
        if says.lower() not in str(error).lower():
            fail("error-words", what, want=repr(says), got=repr(str(error)))
    except Exception as error:
        fail("wrong-error", what, want=exception.__name__, got=crash_in_words(error), cause=error)
    else:
        fail("no-error", what, want=exception.__name__, got=value_in_words(got))


def unchanged(fn, *args, what: str) -> None:
    """Check that a call leaves the tensors among its arguments as they were."""
    got, touched = _watched(fn, args, what)
    if got is None:
        fail("returned-nothing", what)
    if touched:
        fail("modified", what, which=touched)


def _watched(fn, case, what: str) -> tuple[object, str | None]:
    """Call `fn` on copies: its result, and the argument that it changed, if any."""
    args, kwargs = _copies(case)
    before = _copies(case)[0]
    try:
        got = fn(*args, **kwargs)
    except CheckFailed:
        raise
    except NotImplementedError as error:
        fail("not-written", what, cause=error)
    except Exception as error:
        fail("crashed", what, error=crash_in_words(error), cause=error)
    for place, (now, then) in enumerate(zip(args, before, strict=True)):
        now, then = as_tensor(now), as_tensor(then)
        if then is not None and (now.shape != then.shape or not same(now, then, EXACT).all()):
            return got, _parameter(fn, place)
    return got, None


def _parameter(fn, place: int) -> str:
    """The name of a function's argument, or its place, as in `number 0`."""
    try:
        return f"`{list(inspect.signature(fn).parameters)[place]}`"
    except (TypeError, ValueError, IndexError):
        return f"number {place}"


def _climb_untouched(got, want, touched: str | None, what, tolerance, axes) -> None:
    """The ladder, with the rung "arguments unmodified" just below the values."""
    try:
        climb(got, want, what, tolerance, axes)
    except CheckFailed as failed:
        if not touched or failed.rule not in ("values", "number"):
            raise
    if touched:
        fail("modified", what, which=touched)


def _name(failed: CheckFailed, got: list, want: list, unlike: Mapping, tolerance) -> None:
    """Put a known mistake into the failure, if the evidence names exactly one."""
    if not got:  # some call of the answer raises, as some mistakes' do: no evidence
        return
    named = []
    for mistake, wrong in unlike.items():
        if mistake not in MISTAKES:
            raise KeyError(f"the mistake {mistake!r} has no text in plainformer.messages.MISTAKES")
        if len(wrong) != len(got) or not all(map(agree, got, wrong, [tolerance] * len(got))):
            continue
        differs = [not agree(bad, right, tolerance) for bad, right in zip(wrong, want, strict=True)]
        if sum(differs) >= 2:
            named.append(mistake)
    if len(named) == 1:
        failed.mistake = named[0]


def _results(unlike: Mapping, cases: Sequence) -> dict[str, list]:
    return {key: _tried(fn, cases) if callable(fn) else list(fn) for key, fn in unlike.items()}


def _tried(fn: Callable, cases: Sequence) -> list:
    """The results of all cases, or an empty list when one of them raises."""
    try:
        return [_call(fn, case) for case in cases]
    except Exception:
        return []


def _call(fn: Callable, case):
    args, kwargs = _copies(case)
    return fn(*args, **kwargs)


def _copies(case) -> tuple[list, dict]:
    if isinstance(case, Mapping):
        return [], {name: _copy(value) for name, value in case.items()}
    return [_copy(value) for value in case], {}


def _copy(value):
    """A deep copy; tensors are cloned, since a deep copy refuses the results of autograd."""
    tensor = as_tensor(value)
    if tensor is None:
        return copy.deepcopy(value)
    return tensor.clone().requires_grad_(value.requires_grad)
