"""Wrong answers to the exercises of chapter 01, so that a check can name what it sees.

One dictionary an exercise: a key of `plainformer.messages.MISTAKES`, and the function that somebody
with this mistake would have written. No entry is right; all look reasonable.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Block = Float[Tensor, "..."]
Lengths = Int[Tensor, " b"]
Reading = tuple[Block, Block]


def _real(lengths: Lengths, s: int, more: int = 0) -> Bool[Tensor, "b s"]:
    return torch.arange(s) < lengths[:, None] + more


def _states(x: Block, w_x: Block, w_h: Block) -> Block:
    state, states = x.new_zeros(len(x), w_h.shape[0]), []
    for word in x.unbind(dim=1):
        state = torch.tanh(word @ w_x + state @ w_h)
        states.append(state)
    return torch.stack(states, dim=1)


def _read_in(
    x: Block, lengths: Lengths, w_x: Block, w_h: Block, more: int = 0, last: str = "real"
) -> Reading:
    """What is right, but for `more` rows that are kept and for the row that is taken as last."""
    states = _states(x, w_x, w_h)
    memory = states * _real(lengths, x.shape[1], more)[..., None]
    places = (lengths - 1 + (last == "one late")).clamp(max=x.shape[1] - 1)
    end = {"kept": memory[:, -1], "padded": states[:, -1], "first": memory[:, lengths[0] - 1]}
    return memory, end.get(last, states[torch.arange(len(x)), places])


READ_IN = {
    "one_padded_row_kept": lambda x, n, a, b: _read_in(x, n, a, b, more=1),
    "last_row_of_the_block": lambda x, n, a, b: _read_in(x, n, a, b, last="kept"),
    "length_of_the_first": lambda x, n, a, b: _read_in(x, n, a, b, last="first"),
    "as_given_still": lambda x, n, a, b: _read_in(x, n, a, b, more=1, last="kept"),
    "state_after_padding": lambda x, n, a, b: _read_in(x, n, a, b, last="padded"),
    "state_one_late": lambda x, n, a, b: _read_in(x, n, a, b, last="one late"),
    "padding_not_zeroed": lambda x, n, a, b: (_states(x, a, b), _read_in(x, n, a, b)[1]),
}


def _context(scores: Block, memory: Block, lengths: Lengths, dim: int = -1, more: int = 0) -> Block:
    """Mask, softmax over `dim`, average; what a query over padding alone gets is of no interest."""
    real = _real(lengths, memory.shape[-2], more)[:, None]
    return scores.masked_fill(~real, -1e30).softmax(dim=dim).masked_fill(~real, 0.0) @ memory


def _cut_after(scores: Block, memory: Block, lengths: Lengths) -> Block:
    return (scores.softmax(dim=-1) * _real(lengths, memory.shape[-2])[:, None]) @ memory


def _zero_scores(scores: Block, memory: Block, lengths: Lengths) -> Block:
    return (scores * _real(lengths, memory.shape[-2])[:, None]).softmax(dim=-1) @ memory


def _last_real(scores: Block, memory: Block, lengths: Lengths) -> Block:
    last = memory[torch.arange(len(memory)), lengths - 1]
    return last[:, None].expand(-1, scores.shape[1], -1)


def _best_only(scores: Block, memory: Block, lengths: Lengths) -> Block:
    best = scores.masked_fill(~_real(lengths, memory.shape[-2])[:, None], -1e30).argmax(dim=-1)
    return memory[torch.arange(len(memory))[:, None], best]


def _masked_softmax(scores: Block, memory: Block, lengths: Lengths, low: float) -> Block:
    """A softmax over the queries, with `low` in the padding and no second mask."""
    real = _real(lengths, memory.shape[-2])[:, None]
    return scores.masked_fill(~real, low).softmax(dim=-2) @ memory


def _renormalised(scores: Block, memory: Block, lengths: Lengths, extra: float = 0.0) -> Block:
    shares = scores.softmax(dim=-1) * _real(lengths, memory.shape[-2])[:, None]
    return shares / (shares.sum(dim=-1, keepdim=True) + extra) @ memory


CONTEXT = {
    "padding_kept": lambda scores, memory, lengths: scores.softmax(dim=-1) @ memory,
    "padding_cut_after": _cut_after,
    "padding_score_zero": _zero_scores,
    "one_padding_kept": lambda scores, memory, n: _context(scores, memory, n, more=1),
    "last_real_dropped": lambda scores, memory, n: _context(scores, memory, n, more=-1),
    "softmax_over_queries": lambda scores, memory, n: _context(scores, memory, n, dim=-2),
    "queries_share_padding": lambda scores, memory, n: _masked_softmax(scores, memory, n, -1e30),
    "queries_share_nothing": lambda scores, memory, n: _masked_softmax(
        scores, memory, n, float("-inf")
    ),
    "padding_sets_maximum": _renormalised,
    "padding_still_sets_maximum": lambda scores, memory, n: _renormalised(scores, memory, n, 1e-9),
    "softmax_over_batch": lambda scores, memory, n: _context(scores, memory, n, dim=0),
    "last_state_only": _last_real,
    "last_row_only": lambda scores, memory, n: memory[:, -1:].expand(-1, scores.shape[1], -1),
    "plain_mean": lambda scores, memory, n: _context(0 * scores, memory, n),
    "best_state_only": _best_only,
    "scores_as_shares": lambda scores, memory, n: (
        scores * _real(n, memory.shape[-2])[:, None] @ memory
    ),
}


def _hidden(queries: Block, memory: Block, w_query: Block, w_memory: Block) -> Block:
    return (queries @ w_query)[..., :, None, :] + (memory @ w_memory)[..., None, :, :]


def _additive(q: Block, memory: Block, w_q: Block, w_m: Block, v: Block) -> Block:
    return torch.tanh(_hidden(q, memory, w_q, w_m)) @ v


def _without_dim(scores: Block) -> Block:
    """What PyTorch does where no dim is given."""
    return scores.softmax(dim=0 if scores.dim() in (0, 1, 3) else 1)


def _tanh_of_each(q: Block, memory: Block, w_q: Block, w_m: Block, v: Block) -> Block:
    hidden = torch.tanh(q @ w_q)[..., :, None, :] + torch.tanh(memory @ w_m)[..., None, :, :]
    return (hidden @ v).softmax(dim=-1)


def _parts_multiplied(q: Block, memory: Block, w_q: Block, w_m: Block, v: Block) -> Block:
    hidden = (q @ w_q)[..., :, None, :] * (memory @ w_m)[..., None, :, :]
    return (torch.tanh(hidden) @ v).softmax(dim=-1)


ADDITIVE = {
    "softmax_over_queries": lambda *a: _additive(*a).softmax(dim=-2),
    "softmax_over_batch": lambda *a: _additive(*a).softmax(dim=0),
    "softmax_over_axis_1": lambda *a: _additive(*a).softmax(dim=1),
    "softmax_without_dim": lambda *a: _without_dim(_additive(*a)),
    "softmax_over_everything": lambda *a: _additive(*a).flatten().softmax(0).view_as(_additive(*a)),
    "scores_returned": _additive,
    "tanh_forgotten": lambda q, m, w_q, w_m, v: (_hidden(q, m, w_q, w_m) @ v).softmax(dim=-1),
    "tanh_of_each": _tanh_of_each,
    "tanh_outside": lambda q, m, w_q, w_m, v: torch.tanh(_hidden(q, m, w_q, w_m) @ v).softmax(-1),
    "parts_multiplied": _parts_multiplied,
    "v_forgotten": lambda q, m, w_q, w_m, v: _additive(q, m, w_q, w_m, torch.ones_like(v)).softmax(
        dim=-1
    ),
    "sigmoid_for_tanh": lambda q, m, w_q, w_m, v: (
        torch.sigmoid(_hidden(q, m, w_q, w_m)) @ v
    ).softmax(dim=-1),
}


def _product(queries: Block, memory: Block, w: Block | None = None) -> Block:
    return (queries if w is None else queries @ w) @ memory.mT


MULTIPLICATIVE = {
    "softmax_over_queries": lambda *a: _product(*a).softmax(dim=-2),
    "softmax_over_batch": lambda *a: _product(*a).softmax(dim=0),
    "softmax_over_axis_1": lambda *a: _product(*a).softmax(dim=1),
    "softmax_without_dim": lambda *a: _without_dim(_product(*a)),
    "scores_returned": _product,
    "w_ignored": lambda q, memory, w=None: _product(q, memory).softmax(dim=-1),
    "w_transposed": lambda q, memory, w=None: _product(
        q, memory, None if w is None else w.mT
    ).softmax(dim=-1),
    "w_twice": lambda q, memory, w=None: _product(
        q, memory if w is None else memory @ w.mT, w
    ).softmax(dim=-1),
    "scaled_here": lambda *a: (_product(*a) / a[1].shape[-1] ** 0.5).softmax(dim=-1),
    "not_divided_yet": lambda *a: _product(*a).exp(),
    "cosine_for_product": lambda q, memory, w=None: (
        torch.nn.functional.normalize(q if w is None else q @ w, dim=-1)
        @ torch.nn.functional.normalize(memory, dim=-1).mT
    ).softmax(dim=-1),
}


def _found(weights: Block, memory: Block) -> Block:
    return (weights[:, None] @ memory)[:, 0]


def _step(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    weights = score(state, memory).softmax(dim=-1)
    return cell(torch.cat([symbol, _found(weights, memory)], dim=-1), state), weights


def _new_state_asks(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    """Steps with the last row found, then looks: the order of the other paper, half understood."""
    new, _ = _step(state, symbol, memory, score, cell)
    return new, score(new, memory).softmax(dim=-1)


def _found_first(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    weights = score(state, memory).softmax(dim=-1)
    return cell(torch.cat([_found(weights, memory), symbol], dim=-1), state), weights


def _found_dropped(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    weights = score(state, memory).softmax(dim=-1)
    nothing = 0 * _found(weights, memory)
    return cell(torch.cat([symbol, nothing], dim=-1), state), weights


def _last_found(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    weights = score(state, memory).softmax(dim=-1)
    return cell(torch.cat([symbol, memory[:, -1]], dim=-1), state), weights


def _over_batch(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    weights = score(state, memory).softmax(dim=0)
    return cell(torch.cat([symbol, _found(weights, memory)], dim=-1), state), weights


def _scores_for_shares(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    weights = score(state, memory)
    return cell(torch.cat([symbol, _found(weights, memory)], dim=-1), state), weights


def _scores_out(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    return _step(state, symbol, memory, score, cell)[0], score(state, memory)


def _fresh_start(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    weights = score(state, memory).softmax(dim=-1)
    return cell(torch.cat([symbol, _found(weights, memory)], dim=-1), 0 * state), weights


def _first_memory(state: Block, symbol: Block, memory: Block, score, cell) -> Reading:
    weights = score(state, memory).softmax(dim=-1)
    return cell(torch.cat([symbol, weights @ memory[0]], dim=-1), state), weights


STEP = {
    "first_memory_for_all": _first_memory,
    "new_state_asks": _new_state_asks,
    "found_before_symbol": _found_first,
    "found_not_fed": _found_dropped,
    "last_state_fed": _last_found,
    "softmax_over_batch": _over_batch,
    "scores_for_weights_in_step": _scores_for_shares,
    "scores_out_of_step": _scores_out,
    "state_forgotten": _fresh_start,
}


def _up(number: float) -> int:
    return math.ceil(number)


# One dict for each key of the answer; every function takes n and kernel.
PATHS = {
    "recurrent_steps": {
        "one_step_too_few": lambda n, k: n - 1,
        "all_at_once": lambda n, k: 1,
    },
    "recurrent_path": {
        "input_arrow_forgotten": lambda n, k: n - 1,
        "one_arrow_too_many": lambda n, k: n + 1,
    },
    "attention_steps": {
        "one_after_the_other": lambda n, k: n,
        "one_less_than_n": lambda n, k: n - 1,
    },
    "attention_path": {
        "one_after_the_other": lambda n, k: n,
        "one_less_than_n": lambda n, k: n - 1,
    },
    "start_only_path": {
        "half_the_way": lambda n, k: n,
        "input_arrow_forgotten": lambda n, k: 2 * n - 1,
        "one_arrow_too_many": lambda n, k: 2 * n + 1,
        "vector_at_every_step": lambda n, k: n + 1,
    },
    "looking_back_path": {
        "input_arrow_forgotten": lambda n, k: 1,
        "average_counted": lambda n, k: 3,
        "through_the_encoder": lambda n, k: n + 1,
    },
    "convolution_layers": {
        "both_sides_counted": lambda n, k: _up((n - 1) / (k - 1)),
        "kernel_each_layer": lambda n, k: _up(n / k),
        "whole_kernels_counted": lambda n, k: n // k,
        "one_position_a_layer": lambda n, k: n - 1,
        "rounded_down": lambda n, k: (n - 1) // ((k - 1) // 2),
        "half_kernel_rounded_up": lambda n, k: _up((n - 1) / ((k + 1) // 2)),
        "all_positions_counted": lambda n, k: _up(n / ((k - 1) // 2)),
    },
    "dilated_layers": {
        "rounded_down": lambda n, k: _power_below(n, k),
        "one_layer_too_many": lambda n, k: _power_below(n, k) + 1,
        "doubling": lambda n, k: _up(math.log2(n)),
        "float_logarithm": lambda n, k: _up(math.log(n) / math.log(k)),
        "not_dilated": lambda n, k: _up((n - 1) / (k - 1)),
        "whole_kernels_counted": lambda n, k: n // k,
        "one_position_a_layer": lambda n, k: n - 1,
    },
}


def _power_below(n: int, k: int) -> int:
    """The largest number of layers whose k ** layers does not exceed n."""
    layers = 0
    while k ** (layers + 1) <= n:
        layers += 1
    return layers
