"""The training loop: draw a batch, compare, follow the gradient, again."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

Batch = tuple[tuple[Shaped[Tensor, "..."], ...], Shaped[Tensor, "..."]]


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    draw: Callable[[torch.Generator], Batch],
    loss: Callable[[Float[Tensor, "..."], Shaped[Tensor, "..."]], Float[Tensor, ""]],
    *,
    n_steps: int,
    generator: torch.Generator,
    max_norm: float | None = None,
) -> list[float]:
    """Take `n_steps` optimiser steps and return the loss before each of them.

    `draw(generator)` gives the model's arguments and the targets; `loss(output, targets)` is what
    shall fall. With `max_norm`, gradients whose joint length is greater are shortened to it. The
    model is left in the mode it came in; the caller says whether that is `train()` or `eval()`.
    Raises ValueError when the loss is no longer finite: what follows would be wasted.
    """
    history = []
    for step in range(1, n_steps + 1):
        arguments, targets = draw(generator)
        value = loss(model(*arguments), targets)
        if not value.isfinite():
            raise ValueError(
                f"the loss must stay finite, got {value.item()} in step {step}; "
                f"try a smaller learning rate, or a max_norm"
            )
        optimizer.zero_grad()
        value.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        history.append(value.item())
    return history
