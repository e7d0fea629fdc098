"""How spread out a row of attention is."""

import torch
from jaxtyping import Float
from torch import Tensor


def entropy(weights: Float[Tensor, "*batch s"]) -> Float[Tensor, "*batch"]:
    r"""Entropy of each row of weights: 0 for one key, $\ln s$ when all keys count alike.

    $$ H = -\sum_j w_j \ln w_j, \qquad 0 \ln 0 = 0 $$

    Units: nats.
    """
    return torch.special.entr(weights).sum(dim=-1)


def effective_keys(weights: Float[Tensor, "*batch s"]) -> Float[Tensor, "*batch"]:
    """How many keys, looked at alike, would have the same entropy: from 1 to s.

    A row of zeros (a query that sees nothing) counts 0.
    """
    return entropy(weights).exp().masked_fill(weights.eq(0).all(dim=-1), 0.0)
