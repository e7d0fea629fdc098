"""The bends between two linear layers: without one, both would be a single linear layer."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

Numbers = Float[Tensor, "*shape"]


def relu(x: Numbers) -> Numbers:
    """Keep what is positive, and make the rest 0. At 0 itself the slope is taken as 0."""
    return x.masked_fill(x <= 0, 0.0)


def gelu(x: Numbers) -> Numbers:
    r"""Weigh each number with the chance that a standard normal one is smaller.

    $$ \mathrm{GELU}(x) = x\,\Phi(x) = \frac{x}{2}
       \left(1 + \mathrm{erf}\frac{x}{\sqrt 2}\right) $$

    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415), sec. 2.
    """
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x: Numbers) -> Numbers:
    r"""GELU without the error function, as GPT-2 computes it; never further off than 0.0005.

    $$ \frac{x}{2} \left(1 + \tanh\left(\sqrt{2/\pi}\, (x + 0.044715\, x^3)\right)\right) $$

    A checkpoint that was trained with one of the two forms wants that one.
    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415), sec. 2.
    """
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: Numbers) -> Numbers:
    r"""Weigh each number with its own sigmoid; also called Swish. The bend inside SwiGLU.

    $$ \mathrm{SiLU}(x) = x\,\sigma(x) $$

    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415), sec. 4, who name it.
    """
    return x * torch.sigmoid(x)
