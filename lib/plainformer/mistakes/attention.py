"""Wrong answers to the exercises of chapter 02, so that a check can name what it sees.

One dictionary an exercise: a key of `plainformer.messages.MISTAKES`, and the function that somebody
with this mistake would have written. No entry is right; all look reasonable.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

Rows = Float[Tensor, "*batch s"]
Queries = Float[Tensor, "*batch t d_head"]
Keys = Float[Tensor, "*batch s d_head"]
Values = Float[Tensor, "*batch s d_value"]
Output = Float[Tensor, "*batch t d_value"]
Projected = tuple[Float[Tensor, "..."], Float[Tensor, "..."], Float[Tensor, "..."]]
Slopes = Float[Tensor, "*batch s s"]


def _root(x: Float[Tensor, "..."], axis: int = -1) -> float:
    return x.shape[axis] ** 0.5


def _exp_over_sum(scores: Rows) -> Rows:
    """The softmax exactly as the formula writes it, overflow included."""
    powers = scores.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


def _score_over_sum(scores: Rows) -> Rows:
    return scores / scores.sum(dim=-1, keepdim=True)


def _softmax_over_everything(scores: Rows) -> Rows:
    powers = (scores - scores.max()).exp()
    return powers / powers.sum()


def _one_max_for_all(scores: Rows) -> Rows:
    powers = (scores - scores.max()).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


SOFTMAX = {
    "normalised_by_sum": _score_over_sum,
    "softmax_down_columns": lambda scores: scores.softmax(dim=-2),
    "softmax_over_everything": _softmax_over_everything,
    "not_normalised": lambda scores: scores.exp(),
    "powers_of_two": lambda scores: (scores * math.log(2)).softmax(dim=-1),
    "log_of_softmax": lambda scores: scores.log_softmax(dim=-1),
    "unstable_exp": _exp_over_sum,
    "one_max_for_all": _one_max_for_all,
}

SCORES = {
    "unscaled": lambda q, k: q @ k.mT,
    "divided_by_d_head": lambda q, k: q @ k.mT / q.shape[-1],
    "divided_by_root_s": lambda q, k: q @ k.mT / _root(k, -2),
    "divided_by_root_t": lambda q, k: q @ k.mT / _root(q, -2),
    "divided_by_root_first": lambda q, k: q @ k.mT / _root(q, 0),
    "one_then_halved": lambda q, k: q @ k.mT / q.shape[-1] / 2,
    "halved_width": lambda q, k: q @ k.mT / (q.shape[-1] / 2),
    "multiplied_by_root": lambda q, k: q @ k.mT * _root(q),
    "transposed_scores": lambda q, k: k @ q.mT / _root(q),
    "weights_for_scores": lambda q, k: (q @ k.mT / _root(q)).softmax(dim=-1),
}


def _project(x, w_q, w_k, w_v, memory=None) -> Projected:
    """What is right, for mistakes that go wrong in its arguments or its results alone."""
    asked = x if memory is None else memory
    return x @ w_q, asked @ w_k, asked @ w_v


PROJECT_QKV = {
    "memory_ignored": lambda x, w_q, w_k, w_v, memory=None: _project(x, w_q, w_k, w_v),
    "query_from_memory": lambda x, w_q, w_k, w_v, memory=None: _project(
        x if memory is None else memory, w_q, w_k, w_v
    ),
    "keys_and_values_swapped": lambda x, w_q, w_k, w_v, memory=None: _project(
        x, w_q, w_v, w_k, memory
    ),
    "projections_transposed": lambda x, w_q, w_k, w_v, memory=None: _project(
        x, w_q.mT, w_k.mT, w_v.mT, memory
    ),
}


def _attend(q: Queries, k: Keys, v: Values, divisor: float, dim: int = -1) -> Output:
    return (q @ k.mT / divisor).softmax(dim=dim) @ v


ATTENTION = {
    "unscaled": lambda q, k, v: _attend(q, k, v, 1.0),
    "divided_by_d_head": lambda q, k, v: _attend(q, k, v, q.shape[-1]),
    "divided_by_root_d_value": lambda q, k, v: _attend(q, k, v, _root(v)),
    "divided_by_root_s": lambda q, k, v: _attend(q, k, v, _root(k, -2)),
    "divided_by_root_t": lambda q, k, v: _attend(q, k, v, _root(q, -2)),
    "divided_by_root_first": lambda q, k, v: _attend(q, k, v, _root(q, 0)),
    "one_then_halved": lambda q, k, v: _attend(q, k, v, 2 * q.shape[-1]),
    "halved_width": lambda q, k, v: _attend(q, k, v, q.shape[-1] / 2),
    "multiplied_by_root": lambda q, k, v: _attend(q, k, v, 1 / _root(q)),
    "softmax_over_queries": lambda q, k, v: _attend(q, k, v, _root(q), dim=-2),
    "scaled_after_softmax": lambda q, k, v: _attend(q, k, v, 1.0) / _root(q),
    "normalised_by_sum": lambda q, k, v: _score_over_sum(q @ k.mT / _root(q)) @ v,
    "weights_returned": lambda q, k, v: (q @ k.mT / _root(q)).softmax(dim=-1),
    "unstable_exp": lambda q, k, v: _exp_over_sum(q @ k.mT / _root(q)) @ v,
    "one_max_for_all": lambda q, k, v: _one_max_for_all(q @ k.mT / _root(q)) @ v,
}

# The exercise on paper has t, s, d_model = 2, d_head = 4 and d_value = 3.
HAND_SCORES = {
    "unscaled": SCORES["unscaled"],
    "divided_by_d_head": SCORES["divided_by_d_head"],
    "two_for_d_head": lambda q, k: q @ k.mT / 2**0.5,
    "width_for_d_head": lambda q, k: q @ k.mT / 512**0.5,
    "transposed_scores": SCORES["transposed_scores"],
    "weights_for_scores": SCORES["weights_for_scores"],
}

HAND_WEIGHTS = {
    "unscaled": lambda q, k: (q @ k.mT).softmax(dim=-1),
    "width_for_d_head": lambda q, k: (q @ k.mT / 512**0.5).softmax(dim=-1),
    "divided_by_d_head": lambda q, k: (q @ k.mT / q.shape[-1]).softmax(dim=-1),
    "two_for_d_head": lambda q, k: (q @ k.mT / 2**0.5).softmax(dim=-1),
    "softmax_over_queries": lambda q, k: (q @ k.mT / _root(q)).softmax(dim=-2),
    "normalised_by_sum": lambda q, k: _score_over_sum(q @ k.mT / _root(q)),
}


def _rounded_weights(q: Queries, k: Keys, v: Values) -> Output:
    weights = (q @ k.mT / _root(q)).softmax(dim=-1)
    return torch.round(weights, decimals=4) @ v


HAND_OUTPUT = {
    "unscaled": ATTENTION["unscaled"],
    "divided_by_d_head": ATTENTION["divided_by_d_head"],
    "divided_by_root_d_value": ATTENTION["divided_by_root_d_value"],
    "two_for_d_head": lambda q, k, v: _attend(q, k, v, 2**0.5),
    "width_for_d_head": lambda q, k, v: _attend(q, k, v, 512**0.5),
    "softmax_over_queries": ATTENTION["softmax_over_queries"],
    "normalised_by_sum": ATTENTION["normalised_by_sum"],
    "rounded_weights": _rounded_weights,
}


def _variance(d_head: int, q_mean: float, q_std: float, k_mean: float, k_std: float) -> float:
    return d_head * ((q_std * k_std) ** 2 + (q_std * k_mean) ** 2 + (k_std * q_mean) ** 2)


def _means_ignored(d_head: int, q_mean: float, q_std: float, k_mean: float, k_std: float) -> float:
    return d_head * (q_std * k_std) ** 2


def _one_component(d_head: int, q_mean: float, q_std: float, k_mean: float, k_std: float) -> float:
    return _variance(1, q_mean, q_std, k_mean, k_std)


def _deviation_for_variance(
    d_head: int, q_mean: float, q_std: float, k_mean: float, k_std: float
) -> float:
    return _variance(d_head, q_mean, q_std, k_mean, k_std) ** 0.5


def _deviations_not_squared(
    d_head: int, q_mean: float, q_std: float, k_mean: float, k_std: float
) -> float:
    return d_head * (q_std * k_std + q_std * k_mean**2 + k_std * q_mean**2)


def _second_moment(d_head: int, q_mean: float, q_std: float, k_mean: float, k_std: float) -> float:
    return d_head * (q_std**2 + q_mean**2) * (k_std**2 + k_mean**2)


def _d_head_squared(d_head: int, q_mean: float, q_std: float, k_mean: float, k_std: float) -> float:
    return d_head * _variance(d_head, q_mean, q_std, k_mean, k_std)


VARIANCE = {
    "means_ignored": _means_ignored,
    "one_component": _one_component,
    "deviation_for_variance": _deviation_for_variance,
    "deviations_not_squared": _deviations_not_squared,
    "second_moment": _second_moment,
    "d_head_squared": _d_head_squared,
}


def _outer(weights: Rows) -> Slopes:
    return weights[..., :, None] * weights[..., None, :]


def _diagonal_only(scores: Rows) -> Slopes:
    weights = scores.softmax(dim=-1)
    return torch.diag_embed(weights * (1 - weights))


def _outer_forgotten(scores: Rows) -> Slopes:
    return torch.diag_embed(scores.softmax(dim=-1))


def _diagonal_forgotten(scores: Rows) -> Slopes:
    return -_outer(scores.softmax(dim=-1))


def _sign_flipped(scores: Rows) -> Slopes:
    weights = scores.softmax(dim=-1)
    return _outer(weights) - torch.diag_embed(weights)


def _scores_for_weights(scores: Rows) -> Slopes:
    return torch.diag_embed(scores) - _outer(scores)


def _one_minus_everywhere(scores: Rows) -> Slopes:
    weights = scores.softmax(dim=-1)
    return weights[..., :, None] * (1 - weights[..., None, :])


SOFTMAX_JACOBIAN = {
    "diagonal_only": _diagonal_only,
    "outer_forgotten": _outer_forgotten,
    "diagonal_forgotten": _diagonal_forgotten,
    "sign_flipped": _sign_flipped,
    "scores_for_weights": _scores_for_weights,
    "one_minus_everywhere": _one_minus_everywhere,
}
