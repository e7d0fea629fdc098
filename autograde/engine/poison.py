"""What an exercise asks to do without, replaced by a function that says so.

`autograde.lint` finds honest uses before anything runs; this meets those that only show when
called. A fence for honest people: whoever means to can climb it.
"""

import importlib

OWNERS = ("torch", "torch.nn.functional", "torch.special", "torch.func", "torch.Tensor")


class Forbidden(RuntimeError):
    """An answer called what its exercise asks to do without."""


def poison(names: list[str]) -> None:
    """Replace functions: `torch.softmax` there, a bare `softmax` wherever torch has one."""
    for name in names:
        path, _, last = name.rpartition(".")
        for owner in [path] if path else OWNERS:
            found = _find(owner)
            if callable(getattr(found, last, None)):
                setattr(found, last, _stub(name))


def _find(path: str):
    """The module or class of that dotted name, or None."""
    first, *rest = path.split(".")
    try:
        found = importlib.import_module(first)
    except ImportError:
        return None
    for part in rest:
        found = getattr(found, part, None)
    return found


def _stub(name: str):
    def forbidden(*_, **__):
        raise Forbidden(f"the answer uses {name}, which this exercise asks you to do without")

    return forbidden
