"""What a Transformer is a stack of: attention, then a feed-forward layer, each added to its input.

Chapter 09 opens this box.
"""

from jaxtyping import Float
from torch import Tensor, nn

from plainformer.norms import LayerNorm


class PreNormBlock(nn.Module):
    r"""Each part reads the normed stream and adds to the one that was not normed.

    $$ y = x + \mathrm{Attention}(\mathrm{Norm}(x)), \qquad
       z = y + \mathrm{FFN}(\mathrm{Norm}(y)) $$

    The two norms have weights of their own. What comes out was never normed: the model puts one
    more norm behind its last block.
    Source: Xiong et al. 2020 (arXiv:2002.04745), table 1, on the right.
    """

    def __init__(self, d_model: int, attention: nn.Module, feed_forward: nn.Module):
        super().__init__()
        self.attention_norm, self.attention = LayerNorm(d_model), attention
        self.feed_forward_norm, self.feed_forward = LayerNorm(d_model), feed_forward

    def forward(self, x: Float[Tensor, "b t d_model"], **looks) -> Float[Tensor, "b t d_model"]:
        """Mix the positions, then work on each. What is named besides goes to the attention,
        such as `mask=` or `cache=`.
        """
        x = x + self.attention(self.attention_norm(x), **looks)
        return x + self.feed_forward(self.feed_forward_norm(x))
