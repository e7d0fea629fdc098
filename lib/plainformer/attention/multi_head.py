"""Several attentions side by side, each in a subspace of its own."""

from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from plainformer.attention.dot_product import dot_product_attention
from plainformer.contracts import require_multiple


class MultiHeadAttention(nn.Module):
    r"""Attention in `n_heads` subspaces at once, over the input itself or over a memory.

    $$ \mathrm{MultiHead}(X, M) = \mathrm{Concat}(H_1, \dots, H_h)\, W^O \\
       H_i = \mathrm{Attention}(X W_i^Q, M W_i^K, M W_i^V) $$

    Columns `i * d_head` to `(i + 1) * d_head` of a projection belong to head i.
    Unless told otherwise, `d_head` is `d_model / n_heads`, and `d_value` is `d_head`.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sec. 3.2.2.
    Paper to code: h is `n_heads`, $d_k$ is `d_head`, $d_v$ is `d_value`.
    Raises ValueError when `d_head` is left open and `n_heads` does not divide `d_model`.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int | None = None,
        d_value: int | None = None,
        bias: bool = True,
    ):
        super().__init__()
        if d_head is None:
            require_multiple(d_model=d_model, n_heads=n_heads)
            d_head = d_model // n_heads
        d_value = d_head if d_value is None else d_value
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, n_heads * d_head, bias=bias)
        self.k_proj = nn.Linear(d_model, n_heads * d_head, bias=bias)
        self.v_proj = nn.Linear(d_model, n_heads * d_value, bias=bias)
        self.out_proj = nn.Linear(n_heads * d_value, d_model, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "b t d_model"],
        memory: Float[Tensor, "b s d_model"] | None = None,
        mask: Bool[Tensor, "#t s"]
        | Bool[Tensor, "#b #t s"]
        | Bool[Tensor, "#b #h #t s"]
        | None = None,
    ) -> Float[Tensor, "b t d_model"]:
        """Let every position of `x` look at those of `memory`; without one, at those of `x`.

        A mask of two axes holds for all, one of three is one a sequence and shared by its heads,
        one of four has an axis for the heads as well. A query that sees nothing gets zeros from
        every head, so the bias of `out_proj` is all that is left.
        """
        memory = x if memory is None else memory
        if mask is not None and mask.ndim == 3:
            mask = mask[:, None]  # (b, 1, t, s): else the sequences would be taken for heads
        q, k, v = (
            rearrange(projected, "b n (h d) -> b h n d", h=self.n_heads)
            for projected in (self.q_proj(x), self.k_proj(memory), self.v_proj(memory))
        )
        heads = dot_product_attention(q, k, v, mask)
        return self.out_proj(rearrange(heads, "b h t d_value -> b t (h d_value)"))
