"""Keys and values of all earlier tokens, kept in one block of memory that is laid out ahead."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from plainformer.contracts import require_sizes


class ContiguousCache:
    """Room for the keys and values of one layer, `capacity` tokens in each row of a batch.

    Rows may differ in length. A step takes three calls, in this order:

        positions = cache.positions(t)   # where the t new tokens will stand
        k, v = cache.append(k, v)        # keep them; get back all there are
        mask = cache.mask(positions)     # who may look at whom

    Queries are not kept: no later token asks for them. Keys are kept as they come, so a rotary
    position is applied once, before `append`.
    Raises ValueError when a size is below 1 or `dtype` can hold no fractions.
    """

    def __init__(
        self,
        batch_size: int,
        n_kv_heads: int,
        capacity: int,
        d_head: int,
        d_value: int | None = None,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        d_value = d_head if d_value is None else d_value
        require_sizes(batch_size=batch_size, n_kv_heads=n_kv_heads, capacity=capacity)
        require_sizes(d_head=d_head, d_value=d_value)
        if dtype is not None and not dtype.is_floating_point:
            raise ValueError(
                f"dtype must hold fractions, got {dtype}; use that of the model's weights"
            )
        # Zeros, not empty memory: what a mask hides has weight 0, and 0 times NaN would be NaN.
        room = (batch_size, n_kv_heads, capacity)
        self._k = torch.zeros(*room, d_head, dtype=dtype, device=device)
        self._v = torch.zeros(*room, d_value, dtype=dtype, device=device)
        self._lengths = torch.zeros(batch_size, dtype=torch.long, device=device)

    @property
    def capacity(self) -> int:
        """How many tokens fit into each row."""
        return self._k.shape[2]

    @property
    def lengths(self) -> Int[Tensor, " b"]:
        """How many tokens each row holds; a copy."""
        return self._lengths.clone()

    @property
    def nbytes(self) -> int:
        """Bytes laid out for keys and values, filled or not."""
        return self._k.nbytes + self._v.nbytes

    def positions(self, t: int) -> Int[Tensor, "b t"]:
        """Where the next `t` tokens of each row will stand, counted from 0."""
        return self._lengths[:, None] + torch.arange(t, device=self._lengths.device)

    def append(
        self,
        k: Float[Tensor, "b g t d_head"],
        v: Float[Tensor, "b g t d_value"],
        counts: Int[Tensor, " b"] | None = None,
    ) -> tuple[Float[Tensor, "b g s d_head"], Float[Tensor, "b g s d_value"]]:
        """Keep new keys and values behind the old ones, and return all, cut to the longest row.

        Of row b only the first `counts[b]` tokens are new, the rest is padding and is not kept;
        without `counts`, all are new. What is returned are views: the next call changes them.
        Raises ValueError when a row would overflow (then nothing is kept), when the tensors do not
        fit the cache in shape or dtype, when a count is below 0 or above t, or when gradients are
        wanted: they can't pass through memory that later steps write to.
        """
        self._check(k, v, counts)
        t = k.shape[2]
        if counts is None:
            counts = torch.full_like(self._lengths, t)
        after = self._lengths + counts.to(self._lengths.device)
        full = (after > self.capacity).nonzero().flatten().tolist()
        if full:
            raise ValueError(
                f"each row holds at most capacity={self.capacity} tokens, but with the new ones "
                f"rows {full} would have {after[full].tolist()}; make the cache larger, or reset it"
            )
        kept = torch.arange(t, device=after.device) < counts.to(after.device)[:, None]
        row, token = kept.nonzero(as_tuple=True)
        place = self._lengths[row] + token
        with torch.no_grad():
            self._k[row, :, place] = k[row, :, token]
            self._v[row, :, place] = v[row, :, token]
        self._lengths = after
        s = int(after.max())
        return self._k[:, :, :s], self._v[:, :, :s]

    def mask(self, positions: Int[Tensor, "b t"]) -> Bool[Tensor, "b t s"]:
        """Let each query look at the kept tokens of its row up to its own position.

        `positions` are those of the queries, as `positions` gave them before `append`. When all
        rows are equally long this is `causal_mask(t, s)`: aligned at the bottom right. A query from
        the padding looks at all of its row; nobody looks at padding.
        """
        key = torch.arange(int(self._lengths.max()), device=self._lengths.device)
        kept = key < self._lengths[:, None, None]
        return kept & (key <= positions.to(key.device)[..., None])

    def relative_positions(self, positions: Int[Tensor, "b t"]) -> Int[Tensor, "b t s"]:
        """Position of each kept key minus that of each query, for biases that go by distance."""
        key = torch.arange(int(self._lengths.max()), device=self._lengths.device)
        return key - positions.to(key.device)[..., None]

    def reset(self, rows: Int[Tensor, " rows"] | None = None) -> None:
        """Forget all rows, or those named, so that they start again at position 0."""
        rows = slice(None) if rows is None else rows.to(self._lengths.device)
        self._k[rows], self._v[rows], self._lengths[rows] = 0.0, 0.0, 0

    def _check(self, k: Tensor, v: Tensor, counts: Tensor | None) -> None:
        for name, new, room in [("k", k, self._k), ("v", v, self._v)]:
            b, g, _, width = room.shape
            if new.shape != (b, g, k.shape[2], width):
                raise ValueError(
                    f"{name} must have the shape (b, g, t, width) = ({b}, {g}, t, {width}) of this "
                    f"cache, with one t for k and v, got {tuple(new.shape)}; make a cache that fits"
                )
            if new.dtype != room.dtype:
                raise ValueError(
                    f"{name} must have the dtype of the cache, {room.dtype}, got {new.dtype}; "
                    f"make the cache with dtype={new.dtype}"
                )
            if torch.is_grad_enabled() and new.requires_grad:
                raise ValueError(
                    f"a cache is for inference, but {name} requires gradients; "
                    f"wrap the call in torch.no_grad(), or train without a cache"
                )
        if counts is not None:
            wrong = counts[(counts < 0) | (counts > k.shape[2])]
            if len(counts) != len(k) or wrong.numel():
                raise ValueError(
                    f"counts must be one number from 0 to t={k.shape[2]} for each of {len(k)} "
                    f"rows, got {counts.tolist()}; they say how many new tokens are no padding"
                )
