"""Leaving numbers out at random while a model learns, so that it leans on no single one."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def dropout(
    x: Float[Tensor, "*batch d_model"], kept: Bool[Tensor, "*#batch #d_model"], p: float
) -> Float[Tensor, "*batch d_model"]:
    r"""Zero what is not `kept`, and stretch the rest, so that the mean stays what it was.

    $$ y = \frac{m \odot x}{1 - p}, \qquad \mathbb{E}[m] = 1 - p $$

    The stretching happens here, in training, so that nothing is left to do later ("inverted"
    dropout). The source multiplies the weights by 1 - p at test time instead.
    Source: Srivastava et al. 2014 (JMLR 15), sec. 4, for the form without the stretching.
    Units: `p` is the probability of zeroing, in [0, 1).
    Raises ValueError when `p` is not in [0, 1).
    """
    _require_probability(p)
    return x.masked_fill(~kept, 0.0) / (1 - p)


class Dropout(nn.Module):
    """Dropout that draws its own mask in training and does nothing in evaluation.

    With a `generator`, that one decides what is left out, and no other randomness is touched.
    Units: `p` is the probability of zeroing, in [0, 1).
    Raises ValueError when `p` is not in [0, 1).
    """

    def __init__(self, p: float, generator: torch.Generator | None = None):
        super().__init__()
        _require_probability(p)
        self.p, self.generator = p, generator

    def forward(
        self,
        x: Float[Tensor, "*batch d_model"],
        kept: Bool[Tensor, "*#batch #d_model"] | None = None,
    ) -> Float[Tensor, "*batch d_model"]:
        """Drop out in training, with the mask `kept` where one is given; else return `x` itself."""
        if not self.training:
            return x
        if kept is None:
            if self.p == 0:
                return x
            kept = torch.rand(x.shape, generator=self.generator, device=x.device) >= self.p
        return dropout(x, kept, self.p)


def _require_probability(p: float) -> None:
    if not 0 <= p < 1:
        raise ValueError(
            f"p must be in [0, 1), got {p}; it is the share that is zeroed, 0.1 in most papers"
        )
