"""A measure of what a call costs, in tensors made and in multiplications, not in seconds."""

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode


@dataclass
class Cost:
    largest: int  # bytes of the largest piece of memory that an operation made anew
    made: int  # bytes of all of them together
    flops: int  # in matrix products


class _Recorded(TorchDispatchMode):
    largest = made = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        outs = func(*args, **(kwargs or {}))
        known = {_memory(x) for x in torch.utils._pytree.tree_leaves((args, kwargs))}
        for out in torch.utils._pytree.tree_leaves(outs):
            if isinstance(out, torch.Tensor) and _memory(out) not in known:
                size = out.untyped_storage().nbytes()
                self.largest, self.made = max(self.largest, size), self.made + size
        return outs


def _memory(x) -> int | None:
    """Where the tensor's memory begins: a view begins with that of what it views."""
    return x.untyped_storage().data_ptr() if isinstance(x, torch.Tensor) else None


@contextlib.contextmanager
def _at_most(more: int):
    if not sys.platform.startswith("linux"):
        yield  # such a limit is not kept elsewhere
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


@pytest.fixture
def cost():
    """Call something and say what it costs, its backward pass included when it has one.

    More than a gigabyte beyond what the process has now is an error at once, and not a machine
    that has no memory left for the other tests.
    """

    def measure(call, *inputs, **settings) -> Cost:
        with _at_most(2**30), FlopCounterMode(display=False) as flops, _Recorded() as recorded:
            out = call(*inputs, **settings)
            if out.requires_grad:
                out.sum().backward()
        return Cost(recorded.largest, recorded.made, flops.get_total_flops())

    return measure
