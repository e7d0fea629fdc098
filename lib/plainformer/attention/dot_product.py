"""Scaled dot-product attention: the one formula that the whole course stands on."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def attention_weights(
    q: Float[Tensor, "*batch t d_head"],
    k: Float[Tensor, "*batch s d_head"],
    mask: Bool[Tensor, "*#batch #t s"] | None = None,
) -> Float[Tensor, "*batch t s"]:
    """How much each query looks at each key; every row sums to one.

    `mask[t, s]` is True where query t may look at key s; a query that sees nothing has weights 0.
    """
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(dim=-1)
    # A finite floor, not -inf: softmax of a row of -inf is NaN, and so is its gradient.
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0)


def dot_product_attention(
    q: Float[Tensor, "*batch t d_head"],
    k: Float[Tensor, "*batch s d_head"],
    v: Float[Tensor, "*batch s d_value"],
    mask: Bool[Tensor, "*#batch #t s"] | None = None,
) -> Float[Tensor, "*batch t d_value"]:
    r"""Average the values, weighted by how well each query matches each key.

    $$ O = \mathrm{softmax}\left(Q K^\top / \sqrt{d_k}\right) V $$

    A query that sees nothing, because of `mask`, returns zeros.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), eq. 1, with a mask.
    Paper to code: $d_k$ is `d_head`, $d_v$ is `d_value`.
    """
    return attention_weights(q, k, mask) @ v
