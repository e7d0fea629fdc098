"""Softmax over scores that arrive piece by piece, and how finished pieces are put together.

The trick of flash attention: a weighted average under softmax can be carried along with two numbers
a row, the largest score so far and the sum of exponentials relative to it.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from plainformer.contracts import require_sizes
from plainformer.flash.semantics import Window, keep, key_range


class RunningSoftmax(NamedTuple):
    r"""What the rows of attention remember of the keys that they have met.

    Another key changes the largest score from m to m', and one factor brings the old sums along:

    $$ m' = \max(m, \max_j x_j), \qquad l' = e^{m - m'} l + \sum_j e^{x_j - m'} $$

    Source: Milakov and Gimelshein 2018 (arXiv:1805.02867), algorithm 3; Dao et al. 2022
    (arXiv:2205.14135), algorithm 1, carries the values along.
    Paper to code: m is `largest`, l is `total`.
    """

    largest: Float[Tensor, "*rows 1"]  # score; -inf before the first key
    total: Float[Tensor, "*rows 1"]  # sum of exp(score - largest)
    weighted: Float[Tensor, "*rows d_value"]  # sum of exp(score - largest) * value

    @staticmethod
    def start(rows: tuple[int, ...], d_value: int, like: Tensor) -> "RunningSoftmax":
        """Before the first key, in the dtype and on the device of `like`."""
        return RunningSoftmax(
            like.new_full((*rows, 1), -math.inf),
            like.new_zeros((*rows, 1)),
            like.new_zeros((*rows, d_value)),
        )

    def meet(
        self, scores: Float[Tensor, "*batch t s"], v: Float[Tensor, "*#batch s d_value"]
    ) -> "RunningSoftmax":
        """Meet s more keys; a score of -inf is a key that is not seen."""
        largest = torch.maximum(self.largest, scores.amax(dim=-1, keepdim=True))
        # A row that has seen nothing yet: -inf - (-inf) would be NaN, for good.
        safe = largest.masked_fill(largest == -math.inf, 0.0)
        weights = (scores - safe).exp()
        keep_old = (self.largest - safe).exp()
        total = keep_old * self.total + weights.sum(dim=-1, keepdim=True)
        return RunningSoftmax(largest, total, keep_old * self.weighted + weights @ v)

    def finish(self) -> tuple[Float[Tensor, "*rows d_value"], Float[Tensor, "*rows"]]:
        """Divide once, at the end: the output, and the log-sum-exp of all scores.

        A row that saw nothing gives zeros and -inf.
        """
        total = self.total.masked_fill(self.total == 0, 1.0)
        return self.weighted / total, (self.largest + total.log()).squeeze(-1)


def merge_parts(
    o: Float[Tensor, "parts *batch t d_value"], lse: Float[Tensor, "parts *batch t"]
) -> tuple[Float[Tensor, "*batch t d_value"], Float[Tensor, "*batch t"]]:
    """Put finished parts together that saw different keys: an average weighted by exp(lse).

    >>> o, lse = torch.tensor([[[1.0]], [[4.0]]]), torch.tensor([[0.0], [0.0]])
    >>> merge_parts(o, lse)
    (tensor([[2.5000]]), tensor([0.6931]))
    """
    largest = lse.amax(dim=0)
    safe = largest.masked_fill(largest == -math.inf, 0.0)
    weights = (lse - safe).exp()
    total = weights.sum(dim=0)
    weights = weights / total.masked_fill(total == 0, 1.0)
    return (weights[..., None] * o).sum(dim=0).to(o.dtype), safe + total.log()


def split_keys_attention(
    q: Float[Tensor, "*batch t d_head"],
    k: Float[Tensor, "*batch s d_head"],
    v: Float[Tensor, "*batch s d_value"],
    *,
    splits: int,
    window: Window = (None, None),
    scale: float | None = None,
) -> tuple[Float[Tensor, "*batch t d_value"], Float[Tensor, "*batch t"]]:
    """Cut the keys into parts, attend to each part alone, merge: output and log-sum-exp.

    For decoding: one query leaves a processor with many cores idle unless the keys are shared out.
    The parts are computed one after the other here; nothing in one waits for another. A part in
    which no query sees a key is left out.
    Source: the idea of flash-decoding (Dao et al. 2023, blog post).
    Raises ValueError when `splits` is below 1.
    """
    require_sizes(splits=splits)
    t, s = q.shape[-2], k.shape[-2]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    low, high, _, _ = key_range(0, t - 1, s - t, s, *window)
    size = max(1, -(-(high - low) // splits))
    i = torch.arange(t, device=q.device)[:, None]
    nothing = RunningSoftmax.start(q.shape[:-1], v.shape[-1], like=q)
    parts = []
    for first in range(low, high, size):
        last = min(first + size, high)
        kept = keep(i, torch.arange(first, last, device=q.device), s - t, s, *window)
        scores = (scale * q @ k[..., first:last, :].mT).masked_fill(~kept, -math.inf)
        parts.append(nothing.meet(scores, v[..., first:last, :]).finish())
    o, lse = zip(*(parts or [nothing.finish()]), strict=True)
    return merge_parts(torch.stack(o), torch.stack(lse))
