"""ALiBi: the further away a key, the lower its score, at another rate in each head."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor


def alibi_slopes(n_heads: int) -> Float[Tensor, " h"]:
    r"""How much each head subtracts for one position of distance.

    $$ m_i = 2^{-8i/h}, \qquad i = 1, \dots, h $$

    When h is no power of two: the slopes of the power of two below it, then every other slope of
    the power above it, as many as are missing.
    Source: Press et al. 2022 (arXiv:2108.12409), sec. 3; for other h, the authors' code.
    Paper to code: h is `n_heads`, m is a slope.
    Raises ValueError when `n_heads` is below 1.
    >>> alibi_slopes(4)
    tensor([0.2500, 0.0625, 0.0156, 0.0039])
    """
    if n_heads < 1:
        raise ValueError(f"n_heads must be at least 1, got {n_heads}; one slope goes to each head")
    below = 2 ** math.floor(math.log2(n_heads))

    def slopes(h: int) -> Tensor:
        return 2.0 ** (-8 * torch.arange(1, h + 1) / h)

    return torch.cat([slopes(below), slopes(2 * below)[0::2][: n_heads - below]])


def alibi_bias(
    relative: Int[Tensor, "*batch t s"], slopes: Float[Tensor, " h"]
) -> Float[Tensor, "*batch h t s"]:
    """What to add to the scores: minus slope times distance, 0 for the query's own position.

    `relative` is key minus query, as from `relative_positions`. Keys ahead count by their distance
    too, which is the form for encoders; in a decoder the causal mask hides them.
    """
    return -slopes.to(relative.device)[:, None, None] * relative.abs()[..., None, :, :]
