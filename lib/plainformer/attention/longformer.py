"""Attention to the neighbourhood, and to and from a few tokens that see and are seen by all."""

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from plainformer.attention.dot_product import dot_product_attention
from plainformer.attention.local import in_blocks
from plainformer.contracts import require_multiple


class LongformerAttention(nn.Module):
    """Self-attention in which most tokens see a window and the global ones, and those see all.

    A token sees `one_sided` neighbours on each side. Which tokens are global is the task's choice:
    the one a class is read from, or those of a question. Global queries have projections of their
    own, and so have the keys and values that they look at; whoever looks at a global token as a
    local one does sees its ordinary key. No tensor of t times t elements is made.
    Source: Beltagy et al. 2020 (arXiv:2004.05150), sec. 3.1. Their window w is 2 * `one_sided`.
    Raises ValueError when `n_heads` does not divide `d_model`, or `one_sided` is below 0.
    """

    def __init__(self, d_model: int, n_heads: int, *, one_sided: int, bias: bool = True):
        super().__init__()
        require_multiple(d_model=d_model, n_heads=n_heads)
        if one_sided < 0:
            raise ValueError(
                f"one_sided must be at least 0, got {one_sided}; it counts the neighbours on each "
                f"side, half of a window of w"
            )
        self.n_heads, self.one_sided = n_heads, one_sided
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.global_q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.global_k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.global_v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "b t d_model"],
        is_global: Bool[Tensor, "b t"],
        mask: Bool[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, "b t d_model"]:
        """Attend; `mask` is False for padding, which nobody looks at, and which is never global.

        A position that sees nothing gets zeros from every head.
        Raises ValueError when `is_global` or `mask` is no boolean for each token.
        """
        mask = torch.ones_like(is_global) if mask is None else mask
        for name, given in [("is_global", is_global), ("mask", mask)]:
            if given.shape != x.shape[:2] or given.dtype != torch.bool:
                raise ValueError(
                    f"{name} must be a boolean for each token, of shape (b, t) = "
                    f"{tuple(x.shape[:2])}, got {given.dtype} of {tuple(given.shape)}; "
                    f"use .bool(), and expand what holds for all sequences"
                )
        is_global = is_global & mask
        # Of each sequence the places of its global tokens, filled up to the largest number of them.
        chosen = is_global.int().argsort(dim=1, descending=True, stable=True)
        chosen = chosen[:, : int(is_global.sum(dim=1).max())]
        real = is_global.gather(1, chosen)  # (b, n_global)
        heads = rearrange(self._local(x, is_global, mask, chosen, real), "b h t d -> b t (h d)")
        found = rearrange(self._global(x, mask, chosen), "b h t d -> b t (h d)")
        heads = heads.index_put(is_global.nonzero(as_tuple=True), found[real])
        return self.out_proj(heads)

    def _local(
        self, x: Tensor, is_global: Tensor, mask: Tensor, chosen: Tensor, real: Tensor
    ) -> Tensor:
        """Windows, and behind each the global tokens, in one softmax."""
        q, k, v = map(self._heads, (self.q_proj(x), self.k_proj(x), self.v_proj(x)))
        side = self.one_sided
        # Global tokens are hidden in the windows: else they would be counted twice.
        near = (mask & ~is_global)[:, None]
        q, k_near, v_near, seen = in_blocks(q, k, v, left=side, right=side, mask=near)
        n = q.shape[2]
        place = chosen[:, None, :, None]
        k_far, v_far = (
            torch.take_along_dim(far, place, dim=2)[:, :, None].expand(-1, -1, n, -1, -1)
            for far in (k, v)
        )
        seen_far = real[:, None, None, None].expand(-1, -1, n, q.shape[3], -1)
        heads = dot_product_attention(
            q,
            torch.cat([k_near, k_far], dim=-2),
            torch.cat([v_near, v_far], dim=-2),
            torch.cat([seen, seen_far], dim=-1),
        )
        return heads.flatten(2, 3)[:, :, : x.shape[1]]

    def _global(self, x: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """What the global tokens find, when they look at everything."""
        q = self.global_q_proj(torch.take_along_dim(x, chosen[..., None], dim=1))
        k, v = self.global_k_proj(x), self.global_v_proj(x)
        return dot_product_attention(*map(self._heads, (q, k, v)), mask[:, None, None])

    def _heads(self, x: Tensor) -> Tensor:
        return rearrange(x, "b t (h d) -> b h t d", h=self.n_heads)
