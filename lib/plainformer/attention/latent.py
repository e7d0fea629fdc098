"""Multi-head latent attention: keep one short vector for each token, not its keys and values."""

from collections.abc import Callable

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from plainformer.attention.dot_product import dot_product_attention
from plainformer.attention.grouped_query import grouped_query_attention
from plainformer.cache.contiguous import ContiguousCache
from plainformer.positions.rotary import Rotary
from plainformer.positions.sinusoidal import frequencies


class LatentAttention(nn.Module):
    r"""Self-attention whose keys and values, of all heads, come from one latent of each token.

    $$ c = \mathrm{norm}(W^{DKV} x) $$
    $$ k_i = [W_i^{UK} c;\; R\, W^{KR} x], \qquad v_i = W_i^{UV} c $$

    A rotation cannot be moved through the projections, so position has a key of its own: `d_rope`
    turned numbers, the same for all heads, against which each head has a query of its own. Kept in
    the cache are the latent and this key, `d_latent + d_rope` numbers for each token.
    With `d_query_latent`, queries come from a latent as well, which saves parameters and nothing in
    the cache. `rotary` turns `d_rope` numbers; interleaved, with base 10000, unless told otherwise.
    Source: DeepSeek-AI 2024 (arXiv:2405.04434), sec. 2.1.
    Paper to code: $d_h$ is `d_head`, $d_h^R$ is `d_rope`, $d_c$ is `d_latent`, $d_c'$ is
    `d_query_latent`, $W^{DKV}$ and $W^{KR}$ are `kv_down_proj`, $W^{UK}$ and $W^{UV}$ are
    `kv_up_proj`.
    Raises ValueError when a size is below 1 or `d_rope` is odd.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int,
        d_rope: int,
        d_latent: int,
        d_value: int | None = None,
        d_query_latent: int | None = None,
        rotary: Callable | None = None,
        eps: float = 1e-6,
    ):
        super().__init__()
        d_value = d_head if d_value is None else d_value
        sizes = {"d_model": d_model, "n_heads": n_heads, "d_head": d_head, "d_latent": d_latent}
        for name, size in {**sizes, "d_value": d_value, "d_query_latent": d_query_latent}.items():
            if size is not None and size < 1:
                raise ValueError(
                    f"{name} must be at least 1, got {size}; see DeepSeek-V2 for sizes"
                )
        if d_rope < 2 or d_rope % 2:
            raise ValueError(
                f"d_rope must be even and at least 2, got {d_rope}: rotation turns pairs; "
                f"use {max(2, d_rope + d_rope % 2)}"
            )
        self.n_heads, self.d_head, self.d_rope = n_heads, d_head, d_rope
        self.d_latent, self.d_value = d_latent, d_value
        self.rotary = Rotary(frequencies=frequencies(d_rope)) if rotary is None else rotary
        wide = n_heads * (d_head + d_rope)
        if d_query_latent is None:
            self.q_proj = nn.Linear(d_model, wide, bias=False)
        else:
            self.q_proj = nn.Sequential(
                nn.Linear(d_model, d_query_latent, bias=False),
                nn.RMSNorm(d_query_latent, eps=eps),
                nn.Linear(d_query_latent, wide, bias=False),
            )
        self.kv_down_proj = nn.Linear(d_model, d_latent + d_rope, bias=False)
        self.kv_norm = nn.RMSNorm(d_latent, eps=eps)
        self.kv_up_proj = nn.Linear(d_latent, n_heads * (d_head + d_value), bias=False)
        self.out_proj = nn.Linear(n_heads * d_value, d_model, bias=False)

    def new_cache(self, batch_size: int, capacity: int) -> ContiguousCache:
        """An empty cache: "keys" are the latents, "values" the turned keys, of one head each."""
        like = self.kv_down_proj.weight
        sizes = (batch_size, 1, capacity, self.d_latent, self.d_rope)
        return ContiguousCache(*sizes, dtype=like.dtype, device=like.device)

    def forward(
        self,
        x: Float[Tensor, "b t d_model"],
        mask: Bool[Tensor, "#t s"]
        | Bool[Tensor, "#b #t s"]
        | Bool[Tensor, "#b #h #t s"]
        | None = None,
        *,
        cache: ContiguousCache | None = None,
        counts: Int[Tensor, " b"] | None = None,
    ) -> Float[Tensor, "b t d_model"]:
        """The plain form: make the keys and values of every head from the latents, then attend.

        Right for training and for reading a prompt. Masks, cache and counts as in
        `GroupedQueryAttention`.
        """
        q, latent, k_turned, mask = self._read(x, mask, cache, counts)
        both = rearrange(self.kv_up_proj(latent), "b 1 s (h both) -> b h s both", h=self.n_heads)
        k_content, v = both.split([self.d_head, self.d_value], dim=-1)
        k = torch.cat([k_content, k_turned.expand(-1, self.n_heads, -1, -1)], dim=-1)
        heads = dot_product_attention(q, k, v, mask)
        return self.out_proj(rearrange(heads, "b h t d_value -> b t (h d_value)"))

    def absorbed(
        self,
        x: Float[Tensor, "b t d_model"],
        mask: Bool[Tensor, "#t s"]
        | Bool[Tensor, "#b #t s"]
        | Bool[Tensor, "#b #h #t s"]
        | None = None,
        *,
        cache: ContiguousCache | None = None,
        counts: Int[Tensor, " b"] | None = None,
    ) -> Float[Tensor, "b t d_model"]:
        r"""The same function without ever making keys and values: for decoding.

        $$ q_i \cdot (W_i^{UK} c) = (W_i^{UK\top} q_i) \cdot c $$

        What is left is multi-query attention: all heads look at the latents themselves, with
        queries that are longer, and what they find is projected up at the end.
        """
        q, latent, k_turned, mask = self._read(x, mask, cache, counts)
        q_content, q_turned = q.split([self.d_head, self.d_rope], dim=-1)
        up = rearrange(self.kv_up_proj.weight, "(h both) d_latent -> h both d_latent", h=q.shape[1])
        k_up, v_up = up.split([self.d_head, self.d_value], dim=1)
        q = torch.cat([q_content @ k_up, q_turned], dim=-1)
        k = torch.cat([latent, k_turned], dim=-1)
        scale = (self.d_head + self.d_rope) ** -0.5  # that of the plain form, not of this width
        found = grouped_query_attention(q, k, latent, mask, scale=scale)
        heads = found @ v_up.mT
        return self.out_proj(rearrange(heads, "b h t d_value -> b t (h d_value)"))

    def _read(
        self, x: Tensor, mask: Tensor | None, cache: ContiguousCache | None, counts: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Queries, latents, turned keys, and the mask over what is kept."""
        if counts is not None and cache is None:
            raise ValueError(
                "counts says what a cache is to keep, but there is no cache; "
                "pass cache=attention.new_cache(...), or hide the padding with a mask"
            )
        t = x.shape[1]
        positions = torch.arange(t, device=x.device)[None] if cache is None else cache.positions(t)
        q = rearrange(self.q_proj(x), "b t (h both) -> b h t both", h=self.n_heads)
        q_content, q_turned = q.split([self.d_head, self.d_rope], dim=-1)
        q = torch.cat([q_content, self.rotary(q_turned, positions[:, None])], dim=-1)
        down = self.kv_down_proj(x)[:, None]  # (b, 1, t, d_latent + d_rope)
        latent, k_turned = down.split([self.d_latent, self.d_rope], dim=-1)
        latent, k_turned = self.kv_norm(latent), self.rotary(k_turned, positions[:, None])
        if mask is not None and mask.ndim == 3:
            mask = mask[:, None]  # (b, 1, t, s): else the sequences would be taken for heads
        if cache is not None:
            latent, k_turned = cache.append(latent, k_turned, counts)
            kept = cache.mask(positions)[:, None]
            mask = kept if mask is None else kept & mask
        return q, latent, k_turned, mask
