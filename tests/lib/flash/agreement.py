"""One case of attention, and the rule by which every backend is judged.

An error may be at most twice that of attention written plainly in PyTorch in the same dtype, both
against float64, plus a rounding step. It is the rule of the tests of the flash-attention package:
a plain relative error would trip over gradients that are almost zero.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from plainformer.flash.launch import Blocks, is_interpreted, triton_backward, triton_forward
from plainformer.flash.semantics import Window, as_window, kept_mask, reference_attention
from plainformer.flash.tiled import tiled_backward, tiled_forward
from plainformer.seeding import generator


@dataclass(frozen=True, kw_only=True)
class Case:
    """Sizes are primes where they may be, so that no axis can stand in for another."""

    b: int = 1
    h: int = 2
    g: int = 1
    t: int = 13
    s: int = 19
    d_head: int = 16
    d_value: int = 16
    causal: bool = False
    window: Window | None = None
    key_lengths: tuple[int, ...] | None = None
    scale: float | None = None
    dtype: torch.dtype = torch.float32
    layout: str = "poisoned"
    size: float = 1.0  # of the entries of q and k
    seed: int = 0
    values: dict = field(default_factory=dict)  # name -> what to do with that tensor

    def but(self, **changes) -> "Case":
        return replace(self, **changes)


class Results(NamedTuple):
    o: Tensor
    lse: Tensor
    grad_q: Tensor
    grad_k: Tensor
    grad_v: Tensor


class Inputs(NamedTuple):
    q: Tensor
    k: Tensor
    v: Tensor
    grad_o: Tensor
    grad_lse: Tensor
    key_lengths: Tensor | None
    window: Window
    scale: float


Backend = Callable[[Inputs], Results]


def inputs_of(case: Case) -> Inputs:
    g = generator(case.seed)
    shapes = {
        "q": (case.b, case.h, case.t, case.d_head),
        "k": (case.b, case.g, case.s, case.d_head),
        "v": (case.b, case.g, case.s, case.d_value),
        "grad_o": (case.b, case.h, case.t, case.d_value),
        "grad_lse": (case.b, case.h, case.t),
    }
    made = {}
    for name, shape in shapes.items():
        x = torch.randn(shape, generator=g, dtype=torch.float64)
        x = x * case.size if name in ("q", "k") else x
        x = case.values.get(name, lambda x: x)(x)
        dtype = torch.promote_types(case.dtype, torch.float32) if "lse" in name else case.dtype
        made[name] = LAYOUTS[case.layout](x.to(dtype)) if x.ndim == 4 else x.to(dtype)
    lengths = None if case.key_lengths is None else torch.tensor(case.key_lengths)
    window = as_window(case.causal, case.window, case.t, case.s)
    scale = case.d_head**-0.5 if case.scale is None else case.scale
    return Inputs(**made, key_lengths=lengths, window=window, scale=scale)


def poisoned(x: Tensor) -> Tensor:
    """A view into a larger tensor of NaN: whoever reads past an edge is found out."""
    around = x.new_full([n + 3 for n in x.shape], math.nan)
    inside = around[1:-2, 1:-2, 1:-2, 1:-2]
    return inside.copy_(x)


def positions_first(x: Tensor) -> Tensor:
    """(b, t, h, d) in memory, as projections make it."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def fused(x: Tensor) -> Tensor:
    """One of three in the output of a fused projection."""
    return torch.stack([x + 1, x, x - 1], dim=3)[:, :, :, 1]


def width_last_but_one(x: Tensor) -> Tensor:
    """Neighbours along the width are not neighbours in memory."""
    return x.mT.contiguous().mT


LAYOUTS = {
    "plain": lambda x: x,
    "poisoned": poisoned,
    "positions first": positions_first,
    "fused": fused,
    "width strided": width_last_but_one,
}


def tiles(*tile: int) -> Backend:
    """The tiles in PyTorch, of a given size."""

    def run(x: Inputs) -> Results:
        rules = {"window": x.window, "key_lengths": x.key_lengths, "scale": x.scale, "tile": tile}
        o, lse = tiled_forward(x.q, x.k, x.v, **rules)
        grads = tiled_backward(x.q, x.k, x.v, o, lse, x.grad_o, x.grad_lse, **rules)
        return Results(o, lse, *grads)

    return run


def kernels(queries: int, keys: int) -> Backend:
    """The Triton kernels, in tiles of a given size: on a GPU, or else through the interpreter."""
    blocks = Blocks(queries, keys, 4, 1)

    def run(x: Inputs) -> Results:
        if not is_interpreted():
            x = Inputs(*(on_gpu(y) if isinstance(y, Tensor) else y for y in x))
        rules = {"window": x.window, "key_lengths": x.key_lengths, "scale": x.scale}
        o, lse = triton_forward(x.q, x.k, x.v, **rules, blocks=blocks)
        rules |= {"kv_blocks": blocks, "q_blocks": blocks}
        grads = triton_backward(x.q, x.k, x.v, o, lse, x.grad_o, x.grad_lse, **rules)
        return Results(*(y.cpu() for y in (o, lse, *grads)))

    return run


def on_gpu(x: Tensor) -> Tensor:
    """With the memory around it, and its strides."""
    memory = x.untyped_storage().cuda()
    return x.new_empty(0, device="cuda").set_(memory, x.storage_offset(), x.shape, x.stride())


def exact(x: Inputs) -> Results:
    """The reference in float64, with gradients from both outputs."""
    q, k, v = (y.detach().double().contiguous().requires_grad_() for y in x[:3])
    o, lse = reference_attention(q, k, v, window=x.window, key_lengths=x.key_lengths, scale=x.scale)
    return _with_gradients(o, lse, q, k, v, x)


def plain(x: Inputs) -> Results:
    """As one would write it in PyTorch, in the dtype of the inputs."""
    q, k, v = (y.detach().contiguous().requires_grad_() for y in x[:3])
    n = q.shape[1] // k.shape[1]
    scores = x.scale * (q @ k.repeat_interleave(n, dim=1).mT)
    kept = kept_mask(q.shape[2], k.shape[2], x.window, x.key_lengths)
    scores = scores.masked_fill(~kept, torch.finfo(scores.dtype).min)
    lse = scores.float().logsumexp(dim=-1)
    weights = scores.softmax(dim=-1).masked_fill(~kept, 0.0)
    o = weights @ v.repeat_interleave(n, dim=1)
    seen = kept.any(dim=-1).expand_as(lse)
    return _with_gradients(o, lse.where(seen, -math.inf), q, k, v, x)


def _with_gradients(o, lse, q, k, v, x: Inputs) -> Results:
    seen = lse > -math.inf
    push = (o * x.grad_o).sum() + (lse.where(seen, 0.0) * x.grad_lse).sum()
    return Results(o.detach(), lse.detach(), *torch.autograd.grad(push, (q, k, v)))


def assert_agrees(backend: Backend, case: Case, slack: float = 2.0) -> Results:
    """Judge all five results by the rule; `slack` is the 2 in it."""
    x = inputs_of(case)
    got, want, usual = backend(x), exact(x), plain(x)
    floors = _floors(x, want)
    for name, ours, right, theirs in zip(Results._fields, got, want, usual, strict=True):
        assert ours.shape == right.shape, name
        assert ours.dtype == (x.grad_lse if name == "lse" else x.q).dtype, name
        blind = right == -math.inf
        assert torch.equal(ours == -math.inf, blind), f"{name}: -inf in other places than expected"
        ours, right, theirs = (y.double().masked_fill(blind, 0.0) for y in (ours, right, theirs))
        assert ours.isfinite().all(), f"{name} is not finite"
        if not ours.numel():
            continue
        allowed = slack * (theirs - right).abs().max() + getattr(floors, name)
        error = (ours - right).abs().max()
        assert error <= allowed, f"{name}: error {error:.2e}, allowed {allowed:.2e}"
    return got


def _floors(x: Inputs, want: Results) -> Results:
    """One rounding step of what each result is summed up from, which may cancel to almost nothing.

    Backward, the weights are exp(score - lse): what float32 cannot hold of lse, they lack as well.
    """
    step = torch.finfo(x.q.dtype).eps
    lse = _largest(want.lse.masked_fill(want.lse == -math.inf, 0.0))
    back = step + torch.finfo(torch.float32).eps * lse
    push = _largest(x.grad_o) * _largest(x.v) * x.v.shape[3] ** 0.5 + _largest(x.grad_lse)
    return Results(
        o=step * _largest(x.v),
        lse=torch.finfo(x.grad_lse.dtype).eps * max(1.0, lse),
        grad_q=back * abs(x.scale) * _largest(x.k) * push,
        grad_k=back * (abs(x.scale) * _largest(x.q) * push + _largest(want.grad_k)),
        grad_v=back * (_largest(x.grad_o) + _largest(want.grad_v)),
    )


def _largest(x: Tensor) -> float:
    return x.abs().max().item() if x.numel() else 0.0
