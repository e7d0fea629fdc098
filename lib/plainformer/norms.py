"""Bringing each token's vector to one scale."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.Module):
    r"""Shift and stretch each vector to mean 0 and variance 1, then to what was learned.

    $$ y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta $$

    Mean and variance are taken over the width of one token, never over tokens or sequences. The
    variance divides by `d_model`, not by `d_model - 1`.
    Source: Ba et al. 2016 (arXiv:1607.06450), sec. 3, which has no epsilon.
    Paper to code: g ($\gamma$) is `weight`, b ($\beta$) is `bias`, H is `d_model`.
    Raises ValueError when `d_model` is below 1 or `eps` is below 0.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        if d_model < 1 or not eps >= 0:
            raise ValueError(
                f"d_model must be at least 1 and eps at least 0, got {d_model} and {eps}; "
                f"1e-5 is the usual eps"
            )
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Norm every vector by itself."""
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        return self.weight * centred * (variance + self.eps).rsqrt() + self.bias
