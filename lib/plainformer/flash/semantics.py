"""Who sees whom in flash attention, in one place, and the slow, exact answer to compare with.

`keep` and `key_range` are plain arithmetic without a single tensor operation of their own, so that
the tiles in PyTorch and the Triton kernels use these very lines.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from plainformer.contracts import require_multiple, require_sizes

Window = tuple[int | None, int | None]  # keys before, keys after; None: no limit on that side


def keep(i, j, shift, length, left, right):
    """Whether query i sees key j: the one definition that every backend asks.

    The queries are the last of the keys (bottom-right aligned): `shift` is s - t, so query i stands
    at i + shift. It sees `left` keys before it and `right` after it, where None is no limit, and
    none at or past `length`. Numbers, tensors that broadcast, or blocks of a Triton kernel.
    >>> [keep(0, j, shift=3, length=5, left=1, right=0) for j in range(5)]
    [False, False, True, True, False]
    """
    kept = j < length
    if left is not None:
        kept = kept & (j >= i + shift - left)
    if right is not None:
        kept = kept & (j <= i + shift + right)
    return kept


def key_range(first, last, shift, length, left, right):
    """Which keys the queries `first` to `last` see: those that some see, those that all see.

    Returns (low, high, all_low, all_high), each range without its end. Tiles outside the first are
    never visited, those inside the second need no mask. Read the other way round, for the queries
    that see the keys `first` to `last`: negate `shift`, swap `left` and `right`, and let `length`
    be the number of queries.
    >>> key_range(2, 3, shift=0, length=8, left=None, right=0)
    (0, 4, 0, 3)
    """
    low = 0
    all_low = 0
    high = length
    all_high = length
    if left is not None:
        low = max(first + shift - left, 0)
        all_low = max(last + shift - left, 0)
    if right is not None:
        high = min(last + shift + right + 1, length)
        all_high = min(first + shift + right + 1, length)
    return low, high, all_low, all_high


def as_window(causal: bool, window: Window | None, t: int, s: int) -> Window:
    """One window for both arguments of `flash_attention`; causal is a window without a right side.

    Raises ValueError when a side is below 0.
    >>> as_window(causal=True, window=(3, 2), t=5, s=5)
    (3, 0)
    """
    left, right = (None, None) if window is None else window
    for name, count in {"left": left, "right": right}.items():
        if count is not None and count < 0:
            raise ValueError(
                f"window=(left, right) needs sides of at least 0, got {name}={count}; each counts "
                f"the keys on that side, without the query's own; None means no limit"
            )
    widest = t + s  # sees everything from everywhere; wider would not fit the kernels' integers
    left = None if left is None else min(left, widest)
    right = None if right is None else min(right, widest)
    return left, 0 if causal else right


def check_arguments(
    q: Tensor, k: Tensor, v: Tensor, key_lengths: Tensor | None, scale: float | None
) -> None:
    """Refuse what does not fit together, with the rule, what came, and the way out."""
    for name, x in {"q": q, "k": k, "v": v}.items():
        if x.ndim != 4:
            raise ValueError(
                f"{name} must have four axes (batch, heads, positions, width), got shape "
                f"{tuple(x.shape)}; for a single head write {name}[None, None]"
            )
        if not x.is_floating_point():
            raise TypeError(f"{name} must hold floating-point numbers, got {x.dtype}")
        if x.dtype != q.dtype or x.device != q.device:
            raise ValueError(
                f"q, k and v must share dtype and device, got q in {q.dtype} on {q.device} and "
                f"{name} in {x.dtype} on {x.device}; use {name}.to(q)"
            )
    require_sizes(d_head=q.shape[3], d_value=v.shape[3])
    if q.shape[3] != k.shape[3]:
        raise ValueError(
            f"q and k must be equally wide, got d_head={q.shape[3]} and {k.shape[3]}; "
            f"only v may have a width of its own"
        )
    if not q.shape[0] == k.shape[0] == v.shape[0]:
        raise ValueError(
            f"q, k and v must have one batch size, got {q.shape[0]}, {k.shape[0]} and {v.shape[0]}"
        )
    if k.shape[1:3] != v.shape[1:3]:
        raise ValueError(
            f"k and v must agree in heads and positions, got {tuple(k.shape[1:3])} and "
            f"{tuple(v.shape[1:3])}; every key has one value"
        )
    require_multiple(n_heads=q.shape[1], n_kv_heads=k.shape[1])
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale must be finite, got {scale}; None is 1 / sqrt(d_head)")
    if key_lengths is not None:
        _check_lengths(key_lengths, q.shape[0], k.shape[2], q.device)


def _check_lengths(key_lengths: Tensor, b: int, s: int, device: torch.device) -> None:
    if key_lengths.shape != (b,) or key_lengths.is_floating_point():
        raise ValueError(
            f"key_lengths must hold one integer for each of the {b} sequences, got "
            f"{key_lengths.dtype} of shape {tuple(key_lengths.shape)}"
        )
    if key_lengths.device != device:
        raise ValueError(
            f"key_lengths must be on the device of q, {device}, got {key_lengths.device}"
        )
    # On a GPU, looking at the numbers would wait for it, and while compiling there are none to look
    # at: there, all backends cut them to 0 ... s instead.
    if device.type != "cpu" or torch.compiler.is_compiling():
        return
    outside = key_lengths[(key_lengths < 0) | (key_lengths > s)]
    if len(outside):
        raise ValueError(
            f"key_lengths must lie between 0 and s={s}, got {outside.tolist()}; s is the padded "
            f"length, shared by the whole batch"
        )


def kept_mask(
    t: int,
    s: int,
    window: Window = (None, None),
    key_lengths: Int[Tensor, " b"] | None = None,
    device: torch.device | None = None,
) -> Bool[Tensor, "#b 1 t s"]:
    """`keep` for all pairs: what the tiles never make, for comparisons, pictures and PyTorch.

    >>> kept_mask(2, 4, window=(1, 0))[0, 0].int()
    tensor([[0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    device = device if key_lengths is None else key_lengths.device
    i = torch.arange(t, device=device)[:, None]
    j = torch.arange(s, device=device)
    length = s if key_lengths is None else key_lengths.clamp(0, s)[:, None, None, None]
    kept = keep(i, j, s - t, length, *window)
    return kept.expand(1 if key_lengths is None else len(key_lengths), 1, t, s)


def reference_attention(
    q: Float[Tensor, "b h t d_head"],
    k: Float[Tensor, "b g s d_head"],
    v: Float[Tensor, "b g s d_value"],
    *,
    causal: bool = False,
    window: Window | None = None,
    key_lengths: Int[Tensor, " b"] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "b h t d_value"], Float[Tensor, "b h t"]]:
    """The output and the log-sum-exp of the scores in float64, by the whole matrix.

    A query that sees nothing gets zeros, -inf, and gradients of zero. NaN among keys and values
    that somebody may see is not hidden.
    """
    check_arguments(q, k, v, key_lengths, scale)
    t, s, n = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
    scale = q.shape[3] ** -0.5 if scale is None else scale
    q, k, v = (x.double() for x in (q, k, v))
    scores = scale * q @ k.repeat_interleave(n, dim=1).mT
    kept = kept_mask(t, s, as_window(causal, window, t, s), key_lengths, q.device)
    seen = kept.any(dim=-1)
    # Rows without keys are taken out before the logarithm: its gradient there would be NaN.
    lse = scores.masked_fill(~kept & seen[..., None], -math.inf).logsumexp(dim=-1)
    weights = (scores - lse[..., None]).exp().masked_fill(~kept, 0.0)
    return weights @ v.repeat_interleave(n, dim=1), lse.masked_fill(~seen, -math.inf)
