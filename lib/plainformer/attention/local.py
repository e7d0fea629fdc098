"""Attention to the neighbourhood alone, at a cost that grows with the length, not its square."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from plainformer.attention.dot_product import dot_product_attention
from plainformer.contracts import require_floats, require_one_length
from plainformer.masks import window_mask


def local_attention(
    q: Float[Tensor, "*batch t d_head"],
    k: Float[Tensor, "*batch s d_head"],
    v: Float[Tensor, "*batch s d_value"],
    *,
    left: int,
    right: int = 0,
    mask: Bool[Tensor, "*#batch s"] | None = None,
    block: int | None = None,
) -> Float[Tensor, "*batch t d_value"]:
    """Let each query look at `left` keys before it, at its own, and at `right` keys after it.

    The same as dot-product attention under `window_mask(t, s, left=left, right=right)`, but the
    mask is never made, nor any other tensor with t times s elements: queries are taken in blocks,
    and each block meets only the keys that any of its queries sees. That is
    `block + left + right` scores for each query, of which `left + right + 1` are used.
    `mask` is False for keys that are padding. A query that sees nothing gets zeros.
    Source: Beltagy et al. 2020 (arXiv:2004.05150), sec. 3.1, for symmetric windows; Jiang et al.
    2023 (arXiv:2310.06825), sec. 2, for causal ones of W positions: `left` is W - 1.
    Raises ValueError when `left` or `right` is below 0, `block` below 1, or when lengths or dtypes
    do not fit each other.
    """
    blocks = in_blocks(q, k, v, left=left, right=right, mask=mask, block=block)
    return dot_product_attention(*blocks).flatten(-3, -2)[..., : q.shape[-2], :]


def in_blocks(
    q: Float[Tensor, "*batch t d_head"],
    k: Float[Tensor, "*batch s d_head"],
    v: Float[Tensor, "*batch s d_value"],
    *,
    left: int,
    right: int = 0,
    mask: Bool[Tensor, "*#batch s"] | None = None,
    block: int | None = None,
) -> tuple[
    Float[Tensor, "*batch n block d_head"],
    Float[Tensor, "*batch n seen d_head"],
    Float[Tensor, "*batch n seen d_value"],
    Bool[Tensor, "*#batch n block seen"],
]:
    """Cut queries into n blocks; give each the keys and values it may see, and who sees whom.

    Windows of neighbouring blocks overlap; they are views, not copies. The last block is filled up
    with queries that nobody asked for. Unless told otherwise, a block is as long as the window is
    wide, between 16 and 256.
    Raises ValueError as `local_attention` does.
    """
    _check(left, right, block, q, k, v, mask)
    t, s = q.shape[-2], k.shape[-2]
    left, right = min(left, s), min(right, t)  # wider is the same, and would be laid out
    block = min(max(left + right, 16), 256) if block is None else block
    block = max(1, min(block, t))
    n = max(1, -(-t // block))
    seen = block + left + right
    # The first block's window starts `left` keys before the first query, which stands at s - t. A
    # negative width cuts keys off: those before every window.
    before, after = left - (s - t), n * block - t + right

    def windows(x: Tensor) -> Tensor:
        return F.pad(x, (0, 0, before, after)).unfold(-2, seen, block).mT

    real = torch.ones(s, dtype=torch.bool, device=k.device) if mask is None else mask
    real = F.pad(real, (before, after)).unfold(-1, seen, block)[..., None, :]  # (*, n, 1, seen)
    # Query i of a block sees its keys i to i + left + right, whichever block it is.
    near = window_mask(block, seen, left=left + right).to(k.device)
    q_blocks = F.pad(q, (0, 0, 0, n * block - t)).unflatten(-2, (n, block))
    return q_blocks, windows(k), windows(v), near & real


def _check(
    left: int, right: int, block: int | None, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
) -> None:
    require_floats(q=q, k=k, v=v)
    for name, size, least in [("left", left, 0), ("right", right, 0), ("block", block, 1)]:
        if size is not None and size < least:
            raise ValueError(
                f"{name} must be at least {least}, got {size}; a causal window of w positions is "
                f"left=w - 1, right=0, and block=None picks a length"
            )
    # Padding would hide a length that is wrong: what is too short would be filled up.
    require_one_length(k=k.shape[-2], v=v.shape[-2])
    if mask is not None:
        require_one_length(k=k.shape[-2], mask=mask.shape[-1])
