"""Where the weights of a model start."""

import torch
from torch import nn


def xavier_(
    module: nn.Module, *, generator: torch.Generator | None = None, gain: float = 1.0
) -> nn.Module:
    r"""Draw every matrix of the linear layers in `module` anew, set their biases to 0, return it.

    $$ W_{ij} \sim \mathcal{N}\left(0,\; g^2 \frac{2}{d_{in} + d_{out}}\right) $$

    A compromise: a variance of 1 / d_in would keep the size of what goes forwards, one of 1 / d_out
    that of the gradients. Embeddings and norms stay as they are.
    Source: Glorot and Bengio 2010 (AISTATS), eq. 12, here normal instead of uniform.
    Paper to code: n_j, n_{j+1} are the widths d_in, d_out; g is `gain`.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_normal_(part.weight, gain=gain, generator=generator)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return module
