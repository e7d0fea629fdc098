"""Attention in which several query heads share one head of keys and values.

As many key/value heads as query heads is multi-head attention, one for all is multi-query
attention, and all between is grouped-query attention.
"""

from collections.abc import Callable

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.cache.contiguous import ContiguousCache
from plainformer.contracts import require_multiple
from plainformer.positions.buckets import relative_positions


def grouped_query_attention(
    q: Float[Tensor, "b h t d_head"],
    k: Float[Tensor, "b g s d_head"],
    v: Float[Tensor, "b g s d_value"],
    mask: Bool[Tensor, "#t s"] | Bool[Tensor, "#b #h #t s"] | None = None,
    bias: Float[Tensor, "#h #t s"] | Float[Tensor, "#b #h #t s"] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "b h t d_value"]:
    """Attention in which query heads `i * h / g` to `(i + 1) * h / g - 1` share key/value head i.

    The keys and values are not repeated in memory: the queries of a group are laid behind each
    other, as if they were more queries of one head. `bias` is added to the scores after they were
    scaled; the scale is 1 / sqrt(d_head) unless told otherwise. A query that sees nothing gets
    zeros.
    Source: Ainslie et al. 2023 (arXiv:2305.13245), sec. 2.2; Shazeer 2019 (arXiv:1911.02150) is
    the case g = 1.
    Raises ValueError when g does not divide h.
    """
    require_multiple(n_heads=q.shape[1], n_kv_heads=k.shape[1])
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    behind = rearrange(q, "b (g n) t d_head -> b g (n t) d_head", g=k.shape[1])
    scores = rearrange(scale * behind @ k.mT, "b g (n t) s -> b (g n) t s", t=q.shape[2])
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    weights = weights.to(v.dtype)  # a bias in float32 made more of them
    weights = rearrange(weights, "b (g n) t s -> b g (n t) s", g=k.shape[1])
    return rearrange(weights @ v, "b g (n t) d_value -> b (g n) t d_value", t=q.shape[2])


class GroupedQueryAttention(nn.Module):
    """Self-attention with `n_heads` query heads and `n_kv_heads` heads of keys and values.

    `rotary(x, positions)`, such as a `Rotary`, turns queries and keys. `position_bias(relative)`,
    such as a `RelativeBias`, or `partial(alibi_bias, slopes=alibi_slopes(n_heads))`, gives what is
    added to the scores for each distance, key minus query.
    Unless told otherwise, `d_head` is `d_model / n_heads`, and `d_value` is `d_head`.
    Source: Ainslie et al. 2023 (arXiv:2305.13245).
    Raises ValueError when `n_kv_heads` does not divide `n_heads`, or when `d_head` is left open and
    `n_heads` does not divide `d_model`.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_kv_heads: int,
        *,
        d_head: int | None = None,
        d_value: int | None = None,
        bias: bool = False,
        rotary: Callable | None = None,
        position_bias: Callable | None = None,
    ):
        super().__init__()
        require_multiple(n_heads=n_heads, n_kv_heads=n_kv_heads)
        if d_head is None:
            require_multiple(d_model=d_model, n_heads=n_heads)
            d_head = d_model // n_heads
        d_value = d_head if d_value is None else d_value
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.d_head, self.d_value = d_head, d_value
        self.rotary, self.position_bias = rotary, position_bias
        self.q_proj = nn.Linear(d_model, n_heads * d_head, bias=bias)
        self.k_proj = nn.Linear(d_model, n_kv_heads * d_head, bias=bias)
        self.v_proj = nn.Linear(d_model, n_kv_heads * d_value, bias=bias)
        self.out_proj = nn.Linear(n_heads * d_value, d_model, bias=bias)

    def new_cache(self, batch_size: int, capacity: int) -> ContiguousCache:
        """An empty cache of this layer's sizes, for `capacity` tokens in each row."""
        like = self.k_proj.weight
        sizes = (batch_size, self.n_kv_heads, capacity, self.d_head, self.d_value)
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
        """Let every position of `x` look at those of `x`, or of the cache with `x` appended.

        Without a cache the mask alone decides who may look, and positions count from 0. With one,
        `x` continues what was read before, each row at its own length, and nobody looks ahead;
        `mask` can hide more. `counts` says how many tokens of each row are no padding, as in
        `ContiguousCache.append`. Masks of two, three and four axes as in `MultiHeadAttention`.
        """
        if counts is not None and cache is None:
            raise ValueError(
                "counts says what a cache is to keep, but there is no cache; "
                "pass cache=attention.new_cache(...), or hide the padding with a mask"
            )
        q = rearrange(self.q_proj(x), "b t (h d_head) -> b h t d_head", h=self.n_heads)
        k = rearrange(self.k_proj(x), "b t (g d_head) -> b g t d_head", g=self.n_kv_heads)
        v = rearrange(self.v_proj(x), "b t (g d_value) -> b g t d_value", g=self.n_kv_heads)
        t = x.shape[1]
        positions = torch.arange(t, device=x.device)[None] if cache is None else cache.positions(t)
        if self.rotary is not None:
            q, k = self.rotary(q, positions[:, None]), self.rotary(k, positions[:, None])
        if mask is not None and mask.ndim == 3:
            mask = mask[:, None]  # (b, 1, t, s): else the sequences would be taken for heads
        relative = relative_positions(t)
        if cache is not None:
            k, v = cache.append(k, v, counts)  # the keys are kept turned: never turn them again
            kept = cache.mask(positions)[:, None]
            mask = kept if mask is None else kept & mask
            relative = cache.relative_positions(positions)
        bias = None if self.position_bias is None else self.position_bias(relative.to(x.device))
        heads = grouped_query_attention(q, k, v, mask, bias)
        return self.out_proj(rearrange(heads, "b h t d_value -> b t (h d_value)"))


def pool_heads(
    weight: Float[Tensor, "rows ..."], n_heads: int, n_kv_heads: int
) -> Float[Tensor, "pooled ..."]:
    """Average the rows of a key or value projection over each group of neighbouring heads.

    Source: Ainslie et al. 2023 (arXiv:2305.13245), sec. 2.1.
    Raises ValueError when `n_kv_heads` does not divide `n_heads`, or `n_heads` the rows.
    """
    require_multiple(rows=weight.shape[0], n_heads=n_heads)
    require_multiple(n_heads=n_heads, n_kv_heads=n_kv_heads)
    n = n_heads // n_kv_heads
    width = weight.shape[0] // n_heads
    return reduce(weight, "(g n width) ... -> (g width) ...", "mean", n=n, width=width)


def mha_to_gqa(
    attention: MultiHeadAttention,
    n_kv_heads: int,
    *,
    rotary: Callable | None = None,
    position_bias: Callable | None = None,
) -> GroupedQueryAttention:
    """A grouped-query attention that starts from a trained multi-head one, to be trained further.

    Queries and the output projection are copied, keys and values are averaged over each group. It
    is the same function only if the heads of a group had the same keys and values before.
    Source: Ainslie et al. 2023 (arXiv:2305.13245), sec. 2.1.
    Raises ValueError when `n_kv_heads` does not divide the number of heads.
    """
    h, d_model = attention.n_heads, attention.q_proj.in_features
    has_bias = attention.q_proj.bias is not None
    grouped = GroupedQueryAttention(
        d_model,
        h,
        n_kv_heads,
        d_head=attention.q_proj.out_features // h,
        d_value=attention.v_proj.out_features // h,
        bias=has_bias,
        rotary=rotary,
        position_bias=position_bias,
    ).to(attention.q_proj.weight)
    weights = {
        name: pool_heads(weight, h, n_kv_heads) if name[:2] in ("k_", "v_") else weight
        for name, weight in attention.state_dict().items()
    }
    grouped.load_state_dict(weights, strict=position_bias is None)
    return grouped
