"""How much memory a piece of code holds at once, counted tensor by tensor."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class MemoryCount(TorchDispatchMode):
    """Count the bytes of the tensors that are made inside the block, as long as they live.

    `peak` is the most that lived at the same time, in bytes; `largest` is the most entries that one
    of them had. Counted, not timed, so that it is the same on every machine. Tensors made before
    the block do not count, nor does what an operation needs only while it runs.
    >>> with MemoryCount() as count:
    ...     table = torch.zeros(100, 100) + 1
    >>> count.largest, count.peak
    (10000, 80000)
    """

    def __init__(self):
        super().__init__()
        self.peak, self.largest = 0, 0
        self._now, self._known = 0, weakref.WeakSet()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = {_address(x) for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)}
        out = func(*args, **kwargs)
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and _address(tensor) not in given:
                self._made(tensor)  # what shares memory with an argument is a view, or in place
        return out

    def _made(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        if storage in self._known:
            return
        self._known.add(storage)
        size = storage.nbytes()
        weakref.finalize(storage, self._gone, size)
        self._now += size
        self.peak = max(self.peak, self._now)
        self.largest = max(self.largest, tensor.numel())

    def _gone(self, size: int) -> None:
        self._now -= size


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
