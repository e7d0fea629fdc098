"""The part of a block that works on each token by itself."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from plainformer.contracts import require_sizes


class FeedForward(nn.Module):
    r"""Up to `d_ff` numbers, a bend in each, and down again: the same for every token.

    $$ \mathrm{FFN}(x) = f(x W_1 + b_1)\, W_2 + b_2 $$

    Source: Vaswani et al. 2017 (arXiv:1706.03762), eq. 2, where f is ReLU. GELU, our default, is
    that of BERT and GPT-2: PyTorch's own, which is faster than ours to read.
    Paper to code: $W_1, b_1$ are in `up_proj`, $W_2, b_2$ in `down_proj`.
    Raises ValueError when a width is below 1.
    """

    def __init__(self, d_model: int, d_ff: int, activation: Callable = F.gelu):
        super().__init__()
        _require_widths(d_model, d_ff)
        self.activation = activation
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Work on every token by itself: nothing moves between positions."""
        return self.down_proj(self.activation(self.up_proj(x)))


class GatedFeedForward(nn.Module):
    r"""Two ways up, of which one says how much of the other passes: SwiGLU, with SiLU inside.

    $$ \mathrm{SwiGLU}(x) = (\mathrm{SiLU}(x W) \odot x V)\, W_2 $$

    Another `activation` makes another of the family: GELU makes GEGLU. There are no biases unless
    asked for. With three matrices instead of two, `gated_width` says which `d_ff` costs as much.
    Source: Shazeer 2020 (arXiv:2002.05202), eq. 6.
    Paper to code: W is in `gate_proj`, V in `up_proj`, $W_2$ in `down_proj`.
    Raises ValueError when a width is below 1.
    """

    def __init__(
        self, d_model: int, d_ff: int, activation: Callable = F.silu, *, bias: bool = False
    ):
        super().__init__()
        _require_widths(d_model, d_ff)
        self.activation = activation
        self.gate_proj = nn.Linear(d_model, d_ff, bias=bias)
        self.up_proj = nn.Linear(d_model, d_ff, bias=bias)
        self.down_proj = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Work on every token by itself: nothing moves between positions."""
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


def gated_width(d_ff: int, multiple_of: int = 1) -> int:
    """Two thirds of `d_ff`: what three matrices may have so that they cost what two did with it.

    Rounded down, as Llama does, then up to a multiple of what the hardware likes.
    Source: Shazeer 2020 (arXiv:2002.05202), sec. 2, for the two thirds.
    Raises ValueError when `d_ff` is below 2, where nothing would be left, or `multiple_of` below 1.
    >>> gated_width(4 * 4096, multiple_of=256)  # Llama's 7 billion
    11008
    """
    require_sizes(multiple_of=multiple_of)
    if d_ff < 2:
        raise ValueError(
            f"d_ff must be at least 2, got {d_ff}: two thirds of less are no whole number; "
            f"d_ff = 4 * d_model is the usual width without a gate"
        )
    width = 2 * d_ff // 3
    return -(-width // multiple_of) * multiple_of


def _require_widths(d_model: int, d_ff: int) -> None:
    if d_model < 1 or d_ff < 1:
        raise ValueError(
            f"d_model and d_ff must be at least 1, got {d_model} and {d_ff}; "
            f"d_ff = 4 * d_model is the usual choice"
        )
