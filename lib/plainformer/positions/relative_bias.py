"""Relative positions that are learned: T5's bias on the scores, and Shaw's vectors for the keys."""

from collections.abc import Callable

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from plainformer.positions.buckets import bidirectional_buckets


class RelativeBias(nn.Module):
    """One learned number for each head and bucket of distance, added to the scores.

    T5 has one such table for all layers of an encoder, with `bidirectional_buckets`, and one for
    all layers of a decoder, with `causal_buckets`. Cross-attention has none.
    Source: Raffel et al. 2020 (arXiv:1910.10683), sec. 2.1.
    Raises ValueError as `buckets` does, when made.
    """

    def __init__(
        self,
        n_heads: int,
        buckets: Callable = bidirectional_buckets,
        *,
        n_buckets: int = 32,
        max_distance: int = 128,
    ):
        super().__init__()
        if n_heads < 1:
            raise ValueError(f"n_heads must be at least 1, got {n_heads}; each has its own column")
        self.table = nn.Embedding(n_buckets, n_heads)
        self.buckets, self.n_buckets, self.max_distance = buckets, n_buckets, max_distance
        self.buckets(self.table.weight.new_zeros(1).long(), n_buckets, max_distance)  # or refuse

    def forward(self, relative: Int[Tensor, "*batch t s"]) -> Float[Tensor, "*batch h t s"]:
        """The bias for each head; `relative` is key minus query, as from `relative_positions`."""
        relative = relative.to(self.table.weight.device)
        bucket = self.buckets(relative, self.n_buckets, self.max_distance)
        return rearrange(self.table(bucket), "... t s h -> ... h t s")


class RelativeKeys(nn.Module):
    r"""A learned vector for each clipped distance, which the query meets as it meets a key.

    $$ e_{ij} = q_i \cdot (k_j + a_{\mathrm{clip}(j - i)}) / \sqrt{d_k} $$

    Gives the second part of the score, to be added as a bias. Distances beyond `max_distance` share
    the vector of `max_distance`, on each side.
    Source: Shaw et al. 2018 (arXiv:1803.02155), eq. 4, without its vectors for the values.
    Paper to code: k (the clipping) is `max_distance`, $d_z$ is `d_head`.
    Raises ValueError when `max_distance` is below 0 or `d_head` below 1.
    """

    def __init__(self, d_head: int, max_distance: int):
        super().__init__()
        if max_distance < 0 or d_head < 1:
            raise ValueError(
                f"max_distance must be at least 0 and d_head at least 1, "
                f"got {max_distance} and {d_head}; Shaw et al. clip at 16"
            )
        self.max_distance = max_distance
        self.table = nn.Embedding(2 * max_distance + 1, d_head)

    def forward(
        self, q: Float[Tensor, "b h t d_head"], relative: Int[Tensor, "#b t s"] | Int[Tensor, "t s"]
    ) -> Float[Tensor, "b h t s"]:
        """What distance adds to the scores of these queries."""
        clipped = relative.clamp(-self.max_distance, self.max_distance) + self.max_distance
        clipped = clipped.to(q.device)
        vectors = self.table(clipped)  # (#b, t, s, d_head)
        along = vectors if vectors.ndim == 4 else vectors[None]
        products = q[:, :, :, None] @ along[:, None].mT  # (b, h, t, 1, s)
        return products.squeeze(-2) / q.shape[-1] ** 0.5
