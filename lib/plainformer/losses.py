"""How wrong a prediction is, as one number that can be made smaller."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def cross_entropy(
    logits: Float[Tensor, "*batch vocab"],
    targets: Int[Tensor, "*batch"],
    *,
    ignore: int | None = None,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    r"""Minus the log of the probability of what was right, on average over what counts.

    $$ -\frac{1}{n} \sum_i \Big( (1 - \epsilon) \ln p_i(y_i) +
       \frac{\epsilon}{V} \sum_v \ln p_i(v) \Big), \qquad p_i = \mathrm{softmax}(z_i) $$

    Targets equal to `ignore`, the padding, count neither in the sum nor in n. With `smoothing`,
    that share of the target is spread over the whole vocabulary, as PyTorch does. Chapter 11 opens
    this box.
    Source: Szegedy et al. 2016 (arXiv:1512.00567), sec. 7, for the smoothing.
    Paper to code: $z$ is `logits`, y is `targets`, $\epsilon$ is `smoothing`, V is `vocab`.
    Units: nats.
    Raises ValueError when `smoothing` is not in [0, 1), a target is no id, or nothing counts.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(
            f"smoothing must be in [0, 1), got {smoothing}; 0.1 is that of the first Transformer"
        )
    counts = torch.ones_like(targets, dtype=torch.bool) if ignore is None else targets != ignore
    logits, targets = logits[counts], targets[counts]
    vocab = logits.shape[-1]
    if not targets.numel():
        raise ValueError(
            f"at least one target must count, got none but ignore={ignore}; leave empty batches out"
        )
    wrong = targets[(targets < 0) | (targets >= vocab)]
    if wrong.numel():
        raise ValueError(
            f"targets must be in 0..{vocab - 1}, got {wrong.tolist()}; "
            f"name the id of the padding as ignore"
        )
    log_p = logits.log_softmax(dim=-1)
    right = log_p.gather(-1, targets[:, None].long())[:, 0]
    return -((1 - smoothing) * right + smoothing * log_p.mean(dim=-1)).mean()
