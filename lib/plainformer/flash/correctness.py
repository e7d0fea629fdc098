"""Whether the kernels are right on the device at hand, judged by attention in float64.

The tests know many more cases; they run on the processor, which has no tensor cores and no races.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from plainformer.flash.attention import flash_attention
from plainformer.flash.semantics import Window, as_window, kept_mask, reference_attention

RESULTS = ("o", "lse", "grad_q", "grad_k", "grad_v")
DTYPES = (torch.bfloat16, torch.float16, torch.float32)  # all in one case: compiling takes time
# Query heads, key heads, queries, keys, d_head, d_value, rules. On a GPU the lengths are ten times
# as long.
CHECKS = [
    (2, 2, 35, 35, 64, 64, {"causal": True}),
    (4, 2, 29, 43, 128, 128, {}),
    (6, 2, 43, 29, 80, 96, {"causal": True}),
    (2, 1, 37, 37, 64, 32, {"window": (9, 3)}),
    (2, 1, 1, 41, 96, 96, {"causal": True, "key_lengths": [41, 13]}),
]


def mistakes(device: str, longer: int = 1) -> list[str]:
    """What is wrong, as sentences: more than twice the error of plain PyTorch in the same dtype."""
    wrong = []
    for h, g, t, s, d_head, d_value, rules in CHECKS:
        t, s = (n if n == 1 else n * longer for n in (t, s))
        rules = dict(rules)
        if "key_lengths" in rules:
            lengths = [n * longer for n in rules["key_lengths"]]
            rules["key_lengths"] = torch.tensor(lengths, device=device)
        for dtype in DTYPES if rules == {"causal": True} and h == g else DTYPES[:1]:
            rng = torch.Generator(device).manual_seed(0)
            shapes = (h, t, d_head), (g, s, d_head), (g, s, d_value), (h, t, d_value)
            x = [torch.randn(2, *n, generator=rng, device=device).to(dtype) for n in shapes]
            ours = _results(flash_attention, x, backend="triton", return_lse=True, **rules)
            right = _results(reference_attention, [y.double() for y in x], **rules)
            theirs = _results(plain_attention, x, **rules)
            for name, *three in zip(RESULTS, ours, right, theirs, strict=True):
                error, allowed = _error(*three, torch.finfo(dtype).eps)
                if not error <= allowed:  # NaN is wrong, too
                    case = f"h={h} g={g} t={t} s={s} d={d_head}/{d_value} {dtype}"
                    wrong.append(f"{name}: error {error:.1e}, allowed {allowed:.1e} ({case})")
    return wrong


def _results(attend: Callable, x: list[Tensor], **options) -> list[Tensor]:
    *inputs, push = (y.detach().clone().requires_grad_() for y in x)
    o, lse = attend(*inputs, **options)
    return [o, lse, *torch.autograd.grad(o, inputs, push)]


def _error(ours: Tensor, right: Tensor, theirs: Tensor, step: float) -> tuple[float, float]:
    blind = right == -torch.inf
    if not torch.equal(ours == -torch.inf, blind):
        return torch.inf, 0.0
    ours, right, theirs = (y.double().masked_fill(blind, 0.0) for y in (ours, right, theirs))
    floor = 4 * step * right.abs().max().clamp(min=1.0)
    allowed = 2 * (theirs - right).abs().max() + floor
    return (ours - right).abs().max().item(), allowed.item()


def plain_attention(
    q: Float[Tensor, "b h t d_head"],
    k: Float[Tensor, "b g s d_head"],
    v: Float[Tensor, "b g s d_value"],
    *,
    causal: bool = False,
    window: Window | None = None,
    key_lengths: Int[Tensor, " b"] | None = None,
) -> tuple[Float[Tensor, "b h t d_value"], Float[Tensor, "b h t"]]:
    """Attention with all its scores, in the dtype of the inputs: the yardstick for errors."""
    n = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(n, dim=1).mT * q.shape[3] ** -0.5
    rules = as_window(causal, window, q.shape[2], k.shape[2]), key_lengths
    kept = kept_mask(q.shape[2], k.shape[2], *rules, q.device)
    scores = scores.masked_fill(~kept, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1).masked_fill(~kept, 0.0)
    return weights @ v.repeat_interleave(n, dim=1), scores.float().logsumexp(dim=-1)
