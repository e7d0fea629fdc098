"""The part of a block that works on each token by itself."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class FeedForward(nn.Module):
    r"""Up to `d_ff` numbers, a bend in each, and down again: the same for every token.

    $$ \mathrm{FFN}(x) = f(x W_1 + b_1)\, W_2 + b_2 $$

    Source: Vaswani et al. 2017 (arXiv:1706.03762), eq. 2, where f is ReLU. GELU, our default, is
    that of BERT and GPT-2.
    Paper to code: $W_1, b_1$ are in `up_proj`, $W_2, b_2$ in `down_proj`.
    Raises ValueError when a width is below 1.
    """

    def __init__(self, d_model: int, d_ff: int, activation: Callable = F.gelu):
        super().__init__()
        if d_model < 1 or d_ff < 1:
            raise ValueError(
                f"d_model and d_ff must be at least 1, got {d_model} and {d_ff}; "
                f"d_ff = 4 * d_model is the usual choice"
            )
        self.activation = activation
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Work on every token by itself: nothing moves between positions."""
        return self.down_proj(self.activation(self.up_proj(x)))
