"""How large gradients and activations are, layer by layer."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn


def gradient_norms(loss: Float[Tensor, ""], parameters: Iterable[nn.Parameter]) -> list[float]:
    r"""The length of the gradient of `loss` for each parameter, all its numbers as one vector.

    $$ \left\lVert \frac{\partial L}{\partial W} \right\rVert_F =
       \sqrt{\sum_{ij} \left(\frac{\partial L}{\partial W_{ij}}\right)^2} $$

    Nothing is added to `.grad`. The graph of `loss` is used up. A parameter that `loss` does not
    depend on counts 0.
    """
    gradients = torch.autograd.grad(loss, list(parameters), allow_unused=True)
    return [0.0 if g is None else g.norm().item() for g in gradients]


def rms_by_depth(
    blocks: Iterable[nn.Module], x: Float[Tensor, "b t d_model"], **looks
) -> list[float]:
    """Root mean square of the stream before the first block and behind each of them, in order.

    `looks` goes to every block, such as `mask=`. Nothing is kept for gradients.
    """
    with torch.no_grad():
        sizes = [x.square().mean().sqrt().item()]
        for block in blocks:
            x = block(x, **looks)
            sizes.append(x.square().mean().sqrt().item())
    return sizes
