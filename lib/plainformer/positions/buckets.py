"""How far a key stands from a query, and T5's buckets: exact when near, coarse when far."""

import math

import torch
from jaxtyping import Int
from torch import Tensor


def relative_positions(t: int, s: int | None = None) -> Int[Tensor, "t s"]:
    """Position of the key minus position of the query: negative means the key came earlier.

    With `s` unlike `t`, the queries are the last `t` of the `s` positions, as in `causal_mask`.
    Raises ValueError when a length is below 0.
    >>> relative_positions(2, 4)
    tensor([[-2, -1,  0,  1],
            [-3, -2, -1,  0]])
    """
    s = t if s is None else s
    if t < 0 or s < 0:
        raise ValueError(f"lengths must be at least 0, got t={t} and s={s}; t counts the queries")
    return torch.arange(s) - torch.arange(s - t, s)[:, None]


def causal_buckets(
    relative: Int[Tensor, "*any"], n_buckets: int = 32, max_distance: int = 128
) -> Int[Tensor, "*any"]:
    """A number from 0 to `n_buckets - 1` for each key behind its query; keys ahead get bucket 0.

    Half of the buckets hold one distance each; the others widen, each by the same factor, and the
    last takes all from `max_distance` on (and, by rounding down, somewhat less).
    Source: Raffel et al. 2020 (arXiv:1910.10683), sec. 2.1; the rule itself is in the T5 code.
    Units: `relative` is key minus query, in tokens.
    Raises ValueError when there are fewer than 2 buckets, or no wide one for lack of distance.
    >>> causal_buckets(torch.tensor([3, 0, -1, -15, -16, -31, -127, -999]))
    tensor([ 0,  0,  1, 15, 16, 21, 31, 31])
    """
    if n_buckets < 2:
        raise ValueError(f"n_buckets must be at least 2, got {n_buckets}; T5 uses 32")
    exact = n_buckets // 2
    if max_distance <= exact:
        raise ValueError(
            f"max_distance must be above the {exact} distances that have a bucket of their own, "
            f"got {max_distance} with n_buckets={n_buckets}; use at least {exact + 1}"
        )
    distance = (-relative).clamp(min=0)
    # float64 where T5 has float32: with its own settings both land in the same bucket.
    ratio = distance.clamp(min=exact).double() / exact
    coarse = exact + ratio.log() / math.log(max_distance / exact) * (n_buckets - exact)
    return torch.where(distance < exact, distance, coarse.long().clamp(max=n_buckets - 1))


def bidirectional_buckets(
    relative: Int[Tensor, "*any"], n_buckets: int = 32, max_distance: int = 128
) -> Int[Tensor, "*any"]:
    """Half of the buckets for keys behind the query and itself, the other half for keys ahead.

    Source: as `causal_buckets`, of which it is two.
    Raises ValueError when `n_buckets` is odd or below 4, or as `causal_buckets` does for one half.
    >>> bidirectional_buckets(torch.tensor([-1, 0, 1, -999, 999]))
    tensor([ 1,  0, 17, 15, 31])
    """
    if n_buckets < 4 or n_buckets % 2:
        raise ValueError(
            f"n_buckets must be even and at least 4, to be shared by both directions, "
            f"got {n_buckets}; T5 uses 32"
        )
    one_way = n_buckets // 2
    return causal_buckets(-relative.abs(), one_way, max_distance) + (relative > 0) * one_way
