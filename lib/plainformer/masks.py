"""Who may look at whom: boolean tensors in which True means "may look".

Masks combine with `&`: `causal_mask(7) & padding_mask(lengths, 7)` allows what both allow.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def causal_mask(t: int, s: int | None = None) -> Bool[Tensor, "t s"]:
    """Let every position look at itself and at what came before it, never ahead.

    With `s` unlike `t`, the queries are the last `t` of the `s` positions (bottom-right aligned):
    one new token, t = 1, sees all that went before. When t > s, the first t - s see nothing.
    >>> causal_mask(2, 4).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """
    s = t if s is None else s
    return torch.ones(t, s, dtype=torch.bool).tril(diagonal=s - t)


def window_mask(t: int, s: int | None = None, *, left: int, right: int = 0) -> Bool[Tensor, "t s"]:
    """Let every position look at itself, at `left` positions before it and `right` after it.

    A causal window of w positions counts the position itself: `left=w - 1`. A symmetric one of w,
    half on each side, is `left=w // 2, right=w // 2`, and w + 1 positions are seen. With `s` unlike
    `t`, the queries are the last `t` of the `s` positions, as in `causal_mask`.
    Raises ValueError when `left` or `right` is below 0.
    >>> window_mask(2, 4, left=1).int()
    tensor([[0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    for name, count in {"left": left, "right": right}.items():
        if count < 0:
            raise ValueError(
                f"{name} must be at least 0, got {count}; it counts the positions on that side, "
                f"without the query itself"
            )
    s = t if s is None else s
    # Not tril and triu: they want diagonals of 64 bits, and a window may be as wide as one likes.
    distance = torch.arange(s) - torch.arange(s - t, s)[:, None]
    return (distance >= -left) & (distance <= right)


def padding_mask(lengths: Int[Tensor, " b"], s: int) -> Bool[Tensor, "b 1 s"]:
    """Let all queries of a sequence look at its first `lengths[b]` keys; the rest is padding.

    The axis of length 1 stands for the queries. For heads, add one more: `mask[:, None]`.
    Raises ValueError when a length is below 0 or above `s`.
    """
    wrong = lengths[(lengths < 0) | (lengths > s)]
    if wrong.numel():
        raise ValueError(
            f"lengths must lie between 0 and s={s}, got {wrong.tolist()}; "
            f"s is the padded length, shared by the whole batch"
        )
    return torch.arange(s, device=lengths.device) < lengths[:, None, None]
