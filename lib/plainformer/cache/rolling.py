"""Keys and values of the last tokens, kept in a ring: what is new takes the place of the oldest."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from plainformer.cache.contiguous import ContiguousCache


class RollingCache(ContiguousCache):
    """Room for the last `window` tokens of each row, for attention that looks back no further.

    The token at position p stands in place p mod `window`. The window counts the query itself. Used
    as a `ContiguousCache`, by the same three calls, but it never fills up: positions count on, and
    memory stays what it is. Keys come back in the order of the ring, which attention does not mind
    if the mask is that of `mask`, and biases go by `relative_positions`.
    Source: Jiang et al. 2023 (arXiv:2310.06825), sec. 2.
    Raises ValueError when a size is below 1 or `dtype` can hold no fractions.
    """

    def __init__(
        self,
        batch_size: int,
        n_kv_heads: int,
        window: int,
        d_head: int,
        d_value: int | None = None,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        if window < 1:
            raise ValueError(
                f"window must be at least 1, got {window}; it counts the query itself, so 1 is "
                f"a token that sees itself alone"
            )
        super().__init__(
            batch_size, n_kv_heads, window, d_head, d_value, dtype=dtype, device=device
        )
        self._seen = self._held()  # positions of the keys that `append` gave last; below 0: none

    @property
    def window(self) -> int:
        """How many tokens of each row are kept, the latest included."""
        return self.capacity

    def append(
        self,
        k: Float[Tensor, "b g t d_head"],
        v: Float[Tensor, "b g t d_value"],
        counts: Int[Tensor, " b"] | None = None,
    ) -> tuple[Float[Tensor, "b g s d_head"], Float[Tensor, "b g s d_value"]]:
        """Keep new keys and values, and return all that the new tokens may look at.

        For one token that is the ring itself: views, which the next call changes. Of a longer chunk
        the early tokens still look at what its late ones push out, so it is the ring as it was, and
        the chunk behind it: window + t keys at most. A mask over them for t queries grows with the
        square of t; feed a long text in chunks, or read it with `local_attention`, and append it
        to have its end kept.
        `counts` as in `ContiguousCache.append`. Raises ValueError as that does, but for overflow.
        """
        self._check(k, v, counts)
        t = k.shape[2]
        if counts is None:
            counts = torch.full_like(self._lengths, t)
        counts = counts.to(self._lengths.device)
        chunk = self._ring_and_chunk(k, v, counts) if t > 1 else None  # before it is written over
        self._write(k, v, counts)
        if chunk is not None:
            return chunk
        s = min(int(self._lengths.max()), self.window)
        self._seen = self._held()[:, :s]
        return self._k[:, :, :s], self._v[:, :, :s]

    def mask(self, positions: Int[Tensor, "b t"]) -> Bool[Tensor, "b t s"]:
        """Let each query look at the last `window` tokens of its row up to its own position.

        The keys are those that the last `append` returned, `positions` those of its queries.
        """
        distance = self.relative_positions(positions)
        return (self._seen[:, None] >= 0) & (distance <= 0) & (distance > -self.window)

    def relative_positions(self, positions: Int[Tensor, "b t"]) -> Int[Tensor, "b t s"]:
        """Position of each key minus that of each query, for biases that go by distance.

        What it says of a place that holds no token has no meaning; `mask` hides it.
        """
        return self._seen[:, None] - positions.to(self._seen.device)[..., None]

    def reset(self, rows: Int[Tensor, " rows"] | None = None) -> None:
        """Forget all rows, or those named, so that they start again at position 0."""
        super().reset(rows)
        self._seen[slice(None) if rows is None else rows.to(self._seen.device)] = -1

    def _held(self) -> Int[Tensor, "b window"]:
        """The position of the token in each place of the ring, below 0 where there is none."""
        last = self._lengths[:, None] - 1
        place = torch.arange(self.window, device=last.device)
        return last - (last - place) % self.window

    def _ring_and_chunk(self, k: Tensor, v: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Copies of what the ring holds, with the new tokens behind them."""
        new = self._new(k, counts)
        s = min(int(self._lengths.max()), self.window)
        positions = torch.where(new, self.positions(k.shape[2]), -1)
        self._seen = torch.cat([self._held()[:, :s], positions], dim=1)
        # Padding becomes 0: a weight of 0 times an infinity would be NaN.
        k, v = (x.masked_fill(~new[:, None, :, None], 0.0) for x in (k, v))
        return torch.cat([self._k[:, :, :s], k], 2), torch.cat([self._v[:, :, :s], v], 2)

    def _write(self, k: Tensor, v: Tensor, counts: Tensor) -> None:
        # Of a chunk longer than the ring only the end: else two tokens would claim one place.
        kept = self._new(k, counts) & ~self._new(k, counts - self.window)
        row, token = kept.nonzero(as_tuple=True)
        place = (self._lengths[row] + token) % self.window
        with torch.no_grad():
            self._k[row, :, place] = k[row, :, token]
            self._v[row, :, place] = v[row, :, token]
        self._lengths = self._lengths + counts

    def _new(self, k: Tensor, counts: Tensor) -> Tensor:
        """True for the first `counts[b]` of the t tokens of row b."""
        return torch.arange(k.shape[2], device=counts.device) < counts[:, None]
