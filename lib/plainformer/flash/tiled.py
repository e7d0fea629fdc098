"""Flash attention in PyTorch: the matrix of scores exists one tile at a time.

Forward, a tile of queries meets one tile of keys after the other and keeps a running softmax; what
it leaves behind is its output and one number a row, the log-sum-exp. Backward, that number brings
the weights of any tile back, so that none had to be stored.

The scores live in one buffer that is used over and over, and heads are taken together as long as
that buffer fits into the processor's cache: that is where the speed comes from.
"""

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from plainformer.contracts import require_sizes
from plainformer.flash.semantics import Window, keep, key_range

Tile = tuple[int, int]  # queries, keys
TILE = (128, 512)  # the fastest that was measured on a processor, together with the next line
BUFFER = 8 * 128 * 512  # scores that are computed at once, over all heads: 2 MiB


def key_tiles(
    first: int, last: int, shift: int, length: int, window: Window, width: int
) -> Iterator[tuple[int, int, bool]]:
    """The tiles of keys that queries `first` to `last` visit, as (low, high, needs a mask).

    Tiles of which no query sees any key are left out; those that every query sees whole need no
    mask.
    >>> list(key_tiles(4, 7, shift=0, length=8, window=(None, 0), width=4))
    [(0, 4, False), (4, 8, True)]
    """
    low, high, all_low, all_high = key_range(first, last, shift, length, *window)
    for tile_low in range(low, high, width):
        tile_high = min(tile_low + width, high)
        yield tile_low, tile_high, tile_low < all_low or tile_high > all_high


@torch.no_grad()
def tiled_forward(
    q: Float[Tensor, "b h t d_head"],
    k: Float[Tensor, "b g s d_head"],
    v: Float[Tensor, "b g s d_value"],
    *,
    window: Window = (None, None),
    key_lengths: Int[Tensor, " b"] | None = None,
    scale: float,
    tile: Tile = TILE,
) -> tuple[Float[Tensor, "b h t d_value"], Float[Tensor, "b h t"]]:
    """Output and log-sum-exp; computed in float32, or in float64 when the inputs are.

    Source: Dao 2023 (arXiv:2307.08691), algorithm 1.
    """
    require_sizes(tile_queries=tile[0], tile_keys=tile[1])
    exact = _exact_dtype(q)
    o = q.new_empty(*q.shape[:3], v.shape[3])
    lse = q.new_empty(q.shape[:3], dtype=exact)
    buffer = q.new_empty(_buffer_size(q, k, tile), dtype=exact)
    for batch, q_heads, kv_heads, length in _shares(q, k, key_lengths, tile):
        share = q[batch, q_heads], k[batch, kv_heads], v[batch, kv_heads]
        out = o[batch, q_heads], lse[batch, q_heads]
        _forward(*share, *out, length, window, scale, tile, buffer)
    return o, lse


def _forward(q, k, v, o, lse, length, window, scale, tile, buffer):
    """One share of the heads, from its first query to its last."""
    (b, h, t, _), (g, s, d_value) = q.shape, v.shape[1:]
    for first in range(0, t, tile[0]):
        rows = slice(first, min(first + tile[0], t))
        q_tile = _behind(q[:, :, rows], g) * scale  # (b g) (n rows) d_head
        largest = q_tile.new_full((*q_tile.shape[:2], 1), -math.inf)
        total = torch.zeros_like(largest)
        weighted = q_tile.new_zeros(*q_tile.shape[:2], d_value)
        for low, high, masked in key_tiles(first, rows.stop - 1, s - t, length, window, tile[1]):
            scores = _scores(q_tile, _heads(k[:, :, low:high], q_tile), buffer)
            if masked:
                _hide(scores, rows, low, high, s - t, length, window)
            new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
            # A row that has seen nothing yet: -inf - (-inf) would be NaN, for good.
            safe = new.masked_fill(new == -math.inf, 0.0)
            scores.sub_(safe).exp_()
            keep_old = largest.sub_(safe).exp_()
            total.mul_(keep_old).add_(scores.sum(dim=-1, keepdim=True))
            weighted.mul_(keep_old).baddbmm_(scores, _heads(v[:, :, low:high], weighted))
            largest = new
        total.masked_fill_(total == 0, 1.0)  # saw nothing: 0 / 1, and largest is -inf
        o[:, :, rows] = weighted.div_(total).view(b, h, -1, d_value)
        lse[:, :, rows] = largest.add_(total.log_()).view(b, h, -1)


@torch.no_grad()
def tiled_backward(
    q: Float[Tensor, "b h t d_head"],
    k: Float[Tensor, "b g s d_head"],
    v: Float[Tensor, "b g s d_value"],
    o: Float[Tensor, "b h t d_value"],
    lse: Float[Tensor, "b h t"],
    grad_o: Float[Tensor, "b h t d_value"],
    grad_lse: Float[Tensor, "b h t"] | None = None,
    *,
    window: Window = (None, None),
    key_lengths: Int[Tensor, " b"] | None = None,
    scale: float,
    tile: Tile = TILE,
) -> tuple[
    Float[Tensor, "b h t d_head"], Float[Tensor, "b g s d_head"], Float[Tensor, "b g s d_value"]
]:
    r"""Gradients for queries, keys and values, from scores that are computed a second time.

    $$ P = e^{S - \mathrm{lse}}, \quad dS = P \circ (dP - \delta), \quad
    \delta_i = o_i \cdot do_i - d\,\mathrm{lse}_i $$

    Source: Dao 2023 (arXiv:2307.08691), algorithm 2, with a gradient for the log-sum-exp as well.
    """
    require_sizes(tile_queries=tile[0], tile_keys=tile[1])
    exact = _exact_dtype(q)
    grad_q = torch.empty_like(q, memory_format=torch.contiguous_format)
    # Every tile of queries adds to them: in full precision, whatever the inputs are.
    grad_k, grad_v = (x.new_zeros(x.shape, dtype=exact) for x in (k, v))
    buffers = q.new_empty(2, _buffer_size(q, k, tile), dtype=exact)
    for batch, q_heads, kv_heads, length in _shares(q, k, key_lengths, tile):
        share = [x[batch, q_heads] for x in (q, o, lse, grad_o)]
        share.append(None if grad_lse is None else grad_lse[batch, q_heads])
        share += [x[batch, kv_heads] for x in (k, v)]
        out = grad_q[batch, q_heads], grad_k[batch, kv_heads], grad_v[batch, kv_heads]
        _backward(*share, *out, length, window, scale, tile, buffers)
    return grad_q, grad_k.to(k.dtype), grad_v.to(v.dtype)


def _backward(
    q, o, lse, grad_o, grad_lse, k, v, grad_q, grad_k, grad_v, length, window, scale, tile, buffers
):
    """One share of the heads, from its first query to its last."""
    t, (g, s, _) = q.shape[2], k.shape[1:]
    for first in range(0, t, tile[0]):
        rows = slice(first, min(first + tile[0], t))
        q_tile = _behind(q[:, :, rows], g) * scale
        grad_o_tile = _behind(grad_o[:, :, rows], g)
        delta = (_behind(o[:, :, rows], g) * grad_o_tile).sum(dim=-1, keepdim=True)
        if grad_lse is not None:
            delta -= _behind(grad_lse[:, :, rows, None], g)
        lse_tile = _behind(lse[:, :, rows, None], g)
        # A row that saw nothing: exp(-inf - inf) is the weight 0, exp(-inf + inf) is NaN.
        lse_tile = lse_tile.masked_fill(lse_tile == -math.inf, math.inf)
        grad_q_tile = torch.zeros_like(q_tile)
        for low, high, masked in key_tiles(first, rows.stop - 1, s - t, length, window, tile[1]):
            k_tile, v_tile = (_heads(x[:, :, low:high], q_tile) for x in (k, v))
            weights = _scores(q_tile, k_tile, buffers[0])
            if masked:  # before the exponential, which may overflow for a key that nobody sees
                _hide(weights, rows, low, high, s - t, length, window)
            weights.sub_(lse_tile).exp_()
            _add(grad_v, low, high, weights, grad_o_tile)
            grad_scores = _scores(grad_o_tile, v_tile, buffers[1])
            grad_scores.sub_(delta).mul_(weights)
            grad_q_tile.baddbmm_(grad_scores, k_tile)
            _add(grad_k, low, high, grad_scores, q_tile)
        grad_q[:, :, rows] = grad_q_tile.mul_(scale).view(*q.shape[:2], -1, q.shape[3])


def _shares(q, k, key_lengths, tile) -> Iterator[tuple[slice, slice, slice, int]]:
    """Which sequences, query heads and key heads to take at once, and how many keys they have.

    Sequences with lengths of their own come one by one: nobody reads the padding.
    """
    b, g, n = q.shape[0], k.shape[1], q.shape[1] // k.shape[1]
    at_once = _heads_at_once(q, k, tile)
    b_step = max(1, at_once // g) if key_lengths is None else 1
    g_step = -(-g // -(-g // at_once))  # as even as can be
    s = k.shape[2]
    lengths = [s] * b if key_lengths is None else key_lengths.clamp(0, s).tolist()
    for first in range(0, b, b_step):
        for head in range(0, g, g_step):
            kv_heads = slice(head, min(head + g_step, g))
            q_heads = slice(kv_heads.start * n, kv_heads.stop * n)
            yield slice(first, first + b_step), q_heads, kv_heads, lengths[first]


def _heads_at_once(q, k, tile) -> int:
    return max(1, BUFFER // max(1, _scores_of_one_head(q, k, tile)))


def _scores_of_one_head(q, k, tile) -> int:
    """In one tile, for a key head and all query heads that share it."""
    return q.shape[1] // k.shape[1] * min(tile[0], q.shape[2]) * min(tile[1], k.shape[2])


def _buffer_size(q, k, tile) -> int:
    heads = min(_heads_at_once(q, k, tile), k.shape[0] * k.shape[1])
    return heads * _scores_of_one_head(q, k, tile)


def _exact_dtype(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _behind(x, g):
    """The queries of heads that share keys, behind each other: (b g) (n rows) width."""
    b, h, rows, width = x.shape
    return x.reshape(b * g, h // g * rows, width).to(_exact_dtype(x))


def _heads(x, like):
    """Sequences and heads on one axis; a view where the memory allows it, else one tile copied."""
    return x.flatten(0, 1).to(like.dtype)


def _scores(rows, columns, buffer):
    """The product of a tile with another, in memory that is used again and again."""
    shape = (*rows.shape[:2], columns.shape[1])
    return torch.bmm(rows, columns.mT, out=buffer[: math.prod(shape)].view(shape))


def _hide(scores, rows, low, high, shift, length, window):
    """Set scores to -inf where `keep` says no."""
    i = torch.arange(rows.start, rows.stop, device=scores.device)[:, None]
    kept = keep(i, torch.arange(low, high, device=scores.device), shift, length, *window)
    scores.view(len(scores), -1, *kept.shape).masked_fill_(~kept, -math.inf)


def _add(total, low, high, scores, rows):
    """Add what a tile of queries says to the gradients of a tile of keys or values."""
    part = total[:, :, low:high]
    part.view(-1, *part.shape[2:]).baddbmm_(scores.mT, rows)
