"""Arguments that a call on the other side has changed in place, changed here as well."""

import numpy
import torch


def restore(old, new) -> None:
    """Make `old` hold what `new` holds, as deep as both have the same form."""
    if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor):
        old.data = new.detach().to(old.dtype) if old.dtype != new.dtype else new.detach()
    elif isinstance(old, numpy.ndarray) and isinstance(new, numpy.ndarray):
        if old.shape == new.shape:
            old[...] = new
    elif isinstance(old, torch.Generator) and isinstance(new, torch.Generator):
        old.set_state(new.get_state())
    elif isinstance(old, list) and isinstance(new, list):
        kept = [_either(a, b) for a, b in zip(old, new, strict=False)]
        old[:] = [*kept, *new[len(kept) :]]
    elif isinstance(old, dict) and isinstance(new, dict):
        kept = {key: _either(old[key], new[key]) if key in old else new[key] for key in new}
        old.clear()
        old.update(kept)
    elif isinstance(old, set) and isinstance(new, set):
        old.clear()
        old.update(new)
    elif isinstance(old, tuple) and isinstance(new, tuple):
        for a, b in zip(old, new, strict=False):
            _either(a, b)


def _either(old, new):
    """The old object, brought up to date, or the new one where it is of another type."""
    for kind in (torch.Tensor, numpy.ndarray, torch.Generator, list, dict, set, tuple):
        if isinstance(old, kind) and isinstance(new, kind):
            restore(old, new)
            return new if kind is tuple and len(old) != len(new) else old
    return new
