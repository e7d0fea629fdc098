"""What a Transformer is a stack of: attention, then a feed-forward layer, each added to its input.

The classes of a family hold the same parts and differ in where the norms stand. Chapter 09 opens
this box.
"""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from plainformer.norms import LayerNorm

# Masks as `MultiHeadAttention` takes them: over the target itself, and over a memory.
Own = Bool[Tensor, "#t t"] | Bool[Tensor, "#b #t t"] | Bool[Tensor, "#b #h #t t"] | None
Across = Bool[Tensor, "#t s"] | Bool[Tensor, "#b #t s"] | Bool[Tensor, "#b #h #t s"] | None


class Block(nn.Module):
    """The parts of a block; who derives from it says in which order they work.

    `norm(d_model)` makes one norm: `LayerNorm`, `RMSNorm`. `dropout` works on what each part gives,
    before it is added; without one, nothing is left out.
    """

    def __init__(
        self,
        d_model: int,
        attention: nn.Module,
        feed_forward: nn.Module,
        *,
        norm: Callable[[int], nn.Module] = LayerNorm,
        dropout: nn.Module | None = None,
    ):
        super().__init__()
        self.attention_norm, self.attention = norm(d_model), attention
        self.feed_forward_norm, self.feed_forward = norm(d_model), feed_forward
        self.dropout = nn.Identity() if dropout is None else dropout


class PreNormBlock(Block):
    r"""Each part reads the normed stream and adds to the one that was not normed.

    $$ y = x + \mathrm{Attention}(\mathrm{Norm}(x)), \qquad
       z = y + \mathrm{FFN}(\mathrm{Norm}(y)) $$

    The two norms have weights of their own. What comes out was never normed: the model puts one
    more norm behind its last block.
    Source: Xiong et al. 2020 (arXiv:2002.04745), table 1, on the right.
    """

    def forward(self, x: Float[Tensor, "b t d_model"], **looks) -> Float[Tensor, "b t d_model"]:
        """Mix the positions, then work on each. What is named besides goes to the attention,
        such as `mask=` or `cache=`.
        """
        x = x + self.dropout(self.attention(self.attention_norm(x), **looks))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class PostNormBlock(Block):
    r"""Each part adds to the stream, and the sum is normed.

    $$ y = \mathrm{Norm}(x + \mathrm{Attention}(x)), \qquad
       z = \mathrm{Norm}(y + \mathrm{FFN}(y)) $$

    What comes out is normed already: no further norm behind the last block. No path leads around
    the norms.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sec. 3.1.
    """

    def forward(self, x: Float[Tensor, "b t d_model"], **looks) -> Float[Tensor, "b t d_model"]:
        """Mix the positions, then work on each. What is named besides goes to the attention."""
        x = self.attention_norm(x + self.dropout(self.attention(x, **looks)))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


class SandwichBlock(Block):
    r"""Pre-norm, with one more norm on what each part gives, before it is added.

    $$ y = x + \mathrm{Norm}(\mathrm{Attention}(\mathrm{Norm}(x))), \qquad
       z = y + \mathrm{Norm}(\mathrm{FFN}(\mathrm{Norm}(y))) $$

    No part can add much more than another, however large its weights are. The model puts one more
    norm behind its last block.
    Source: Ding et al. 2021 (arXiv:2105.13290), who call it Sandwich-LN.
    """

    def __init__(self, d_model: int, attention: nn.Module, feed_forward: nn.Module, **how):
        super().__init__(d_model, attention, feed_forward, **how)
        norm = how.get("norm", LayerNorm)
        self.attention_out_norm, self.feed_forward_out_norm = norm(d_model), norm(d_model)

    def forward(self, x: Float[Tensor, "b t d_model"], **looks) -> Float[Tensor, "b t d_model"]:
        """Mix the positions, then work on each. What is named besides goes to the attention."""
        mixed = self.attention(self.attention_norm(x), **looks)
        x = x + self.dropout(self.attention_out_norm(mixed))
        worked = self.feed_forward(self.feed_forward_norm(x))
        return x + self.dropout(self.feed_forward_out_norm(worked))


class DeepNormBlock(Block):
    r"""Post-norm in which the stream counts `alpha` times as much as what is added to it.

    $$ y = \mathrm{Norm}(\alpha x + \mathrm{Attention}(x)), \qquad
       z = \mathrm{Norm}(\alpha y + \mathrm{FFN}(y)) $$

    `deepnorm_scales` gives the alpha, and how much smaller some weights have to start.
    Source: Wang et al. 2022 (arXiv:2203.00555), fig. 2.
    """

    def __init__(
        self, d_model: int, attention: nn.Module, feed_forward: nn.Module, *, alpha: float, **how
    ):
        super().__init__(d_model, attention, feed_forward, **how)
        self.alpha = alpha

    def forward(self, x: Float[Tensor, "b t d_model"], **looks) -> Float[Tensor, "b t d_model"]:
        """Mix the positions, then work on each. What is named besides goes to the attention."""
        x = self.attention_norm(self.alpha * x + self.dropout(self.attention(x, **looks)))
        return self.feed_forward_norm(self.alpha * x + self.dropout(self.feed_forward(x)))


def deepnorm_scales(n_layers: int) -> tuple[float, float]:
    r"""DeepNorm's two numbers for a stack that is all encoder or all decoder.

    $$ \alpha = (2N)^{1/4}, \qquad \beta = (8N)^{-1/4} $$

    The first weighs the stream. The second is the gain of the initial weights of the values, of the
    output projection and of the feed-forward layer; queries and keys keep a gain of 1.
    Source: Wang et al. 2022 (arXiv:2203.00555), fig. 2. Paper to code: N (or M) is `n_layers`.
    Raises ValueError when `n_layers` is below 1.
    >>> [round(scale, 4) for scale in deepnorm_scales(8)]
    [2.0, 0.3536]
    """
    if n_layers < 1:
        raise ValueError(f"n_layers must be at least 1, got {n_layers}; it counts the blocks")
    return (2 * n_layers) ** 0.25, (8 * n_layers) ** -0.25


class DecoderBlock(Block):
    """The parts of a block that also looks at a memory; who derives from it gives the order."""

    def __init__(
        self,
        d_model: int,
        attention: nn.Module,
        cross_attention: nn.Module,
        feed_forward: nn.Module,
        *,
        norm: Callable[[int], nn.Module] = LayerNorm,
        dropout: nn.Module | None = None,
    ):
        super().__init__(d_model, attention, feed_forward, norm=norm, dropout=dropout)
        self.cross_attention_norm, self.cross_attention = norm(d_model), cross_attention


class PreNormDecoderBlock(DecoderBlock):
    r"""Look at the target so far, then at the memory, then work on each token; norms in front.

    The memory is not normed here: its stack has a norm at its end.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sec. 3.1, in the order of Xiong et al. 2020.
    """

    def forward(
        self,
        x: Float[Tensor, "b t d_model"],
        memory: Float[Tensor, "b s d_model"],
        *,
        mask: Own = None,
        memory_mask: Across = None,
    ) -> Float[Tensor, "b t d_model"]:
        """`mask` says who sees whom in the target, `memory_mask` what is seen of the memory."""
        x = x + self.dropout(self.attention(self.attention_norm(x), mask=mask))
        asked = self.cross_attention_norm(x)
        x = x + self.dropout(self.cross_attention(asked, memory, mask=memory_mask))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class PostNormDecoderBlock(DecoderBlock):
    r"""Look at the target so far, then at the memory, then work on each token; norm each sum.

    Queries come from the target, keys and values from the memory.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sec. 3.1 and 3.2.3.
    """

    def forward(
        self,
        x: Float[Tensor, "b t d_model"],
        memory: Float[Tensor, "b s d_model"],
        *,
        mask: Own = None,
        memory_mask: Across = None,
    ) -> Float[Tensor, "b t d_model"]:
        """`mask` says who sees whom in the target, `memory_mask` what is seen of the memory."""
        x = self.attention_norm(x + self.dropout(self.attention(x, mask=mask)))
        found = self.cross_attention(x, memory, mask=memory_mask)
        x = self.cross_attention_norm(x + self.dropout(found))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
