"""Objects that stay with their owner: the stand-in on this side, and what its owner does for it."""

import inspect
import sys
from collections.abc import Callable

import torch

__tracebackhide__ = True  # its frames are in nobody's error message

SHOWN = 200  # characters of a repr
NAMES = ("__name__", "__doc__", "__signature__")  # the only double-underscored names that cross


class Handle:
    """Stands in for an object of the other process: each operation happens there.

    Comparisons, arithmetic and truth are not forwarded: an answer must not decide those.
    """

    __slots__ = ("_border_",)

    def __init__(self, peer, number: int):
        object.__setattr__(self, "_border_", (peer, number))

    def _ask_(self, op: str, *args):
        peer, number = self._border_
        return peer.ask(op, number, *args)

    def __getattr__(self, name: str):
        if name.startswith("__") and name not in NAMES:
            raise AttributeError(name)
        if name == "__signature__":
            return _signature(self._ask_("signature"))
        return self._ask_("getattr", name)

    def __setattr__(self, name: str, value) -> None:
        self._ask_("setattr", name, value)

    def __getitem__(self, key):
        return self._ask_("getitem", key)

    def __setitem__(self, key, value) -> None:
        self._ask_("setitem", key, value)

    def __contains__(self, value) -> bool:
        return self._ask_("contains", value) is True

    def __len__(self) -> int:
        return self._ask_("len")

    def __iter__(self):
        steps = self._ask_("iter")
        while isinstance(steps, Handle):
            step = steps._ask_("next")
            if step is None:
                return
            yield step[0]
        yield from steps

    def __enter__(self):
        return self._ask_("enter")

    def __exit__(self, *_):
        self._ask_("exit")

    def __repr__(self) -> str:
        text = self._ask_("repr")
        return text[:SHOWN] if isinstance(text, str) else "?"

    def __copy__(self):
        return self

    def __deepcopy__(self, _):
        return self


class CallableHandle(Handle):
    """A function, class or callable object of the other process."""

    __slots__ = ()

    def __call__(self, *args, **kwargs):
        return self._ask_("call", list(args), kwargs)


def card(value) -> list:
    """What the other side is told of an object: its type's name, callable or not, library base."""
    bases = type(value).__mro__
    modules = [kind.__name__ for kind in bases if kind.__module__.startswith("torch.nn.modules")]
    return [type(value).__name__[:60], callable(value), modules[0] if modules else None]


def handle_for(peer, number: int, name: str, is_callable: bool, module) -> Handle:
    """A stand-in that goes by its type's name; `isinstance(it, nn.Module)` is true of a module."""
    kind = CallableHandle if is_callable else Handle
    shown = name if name.isidentifier() and len(name) <= 60 else "object"
    members: dict = {"__slots__": ()}
    library = getattr(torch.nn, module, None) if isinstance(module, str) else None
    if isinstance(library, type) and issubclass(library, torch.nn.Module):
        members["__class__"] = property(lambda _: library)
    return type(shown, (kind,), members)(peer, number)


def _signature(told) -> inspect.Signature:
    """Names and kinds of parameters; their defaults stay where they are."""
    made = []
    for name, kind, optional in told if isinstance(told, list) else []:
        default = ... if optional else inspect.Parameter.empty
        made.append(inspect.Parameter(name, inspect._ParameterKind(kind), default=default))
    return inspect.Signature(made)


# The owner's side


def operate(peer, op: str, number, args: list):
    """Do what is asked with an object of ours. An unknown operation is an error."""
    return OPERATIONS[op](peer._owned[number], *args)


def only_calls(peer, op: str, number, args: list):
    """The judge's rule: its own functions may be called, and plain attributes of modules read.

    Anything more would lead from a function to its globals, and so to a hidden test.
    """
    target = peer._owned[number]
    if op == "call" and callable(target):
        return _call(target, *args)
    name = args[0] if args else None
    if op == "getattr" and isinstance(target, torch.nn.Module) and isinstance(name, str):
        value = None if name.startswith("_") else getattr(target, name, None)
        if isinstance(value, (bool, int, float, str, torch.Tensor)):
            return value
    if op == "repr":
        return f"<{type(target).__name__} of the check>"
    raise AttributeError("of a check's own object only calls are allowed")


def _call(target: Callable, args: list, kwargs: dict):
    return target(*args, **kwargs)


def _next(steps):
    try:
        return [next(steps)]
    except StopIteration:
        return None


def _parameters(target) -> list:
    found = inspect.signature(target).parameters.values()
    return [[p.name, int(p.kind), p.default is not inspect.Parameter.empty] for p in found]


OPERATIONS = {
    "call": _call,
    "getattr": getattr,
    "setattr": setattr,
    "getitem": lambda target, key: target[key],
    "setitem": lambda target, key, value: target.__setitem__(key, value),
    "contains": lambda target, value: value in target,
    "len": len,
    "iter": lambda target: _Steps(iter(target)),
    "next": lambda steps: _next(steps.steps),
    "enter": lambda target: target.__enter__(),
    "exit": lambda target: target.__exit__(*sys.exc_info()),
    "repr": repr,
    "signature": _parameters,
}


class _Steps:
    """An iterator under way; wrapped, so that it crosses as a handle whatever it is."""

    def __init__(self, steps):
        self.steps = steps
