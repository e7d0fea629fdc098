"""Wrong answers to the exercises of chapter 04, so that a check can name what it sees.

One dictionary an exercise: a key of `plainformer.messages.MISTAKES`, and the function that somebody
with this mistake would have written. No entry is right; all look reasonable.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

Tokens = Float[Tensor, "b t d_model"]
Layer = Callable[[Tensor], Tensor]
Positions = Int[Tensor, " t"]
Rows = Float[Tensor, "*batch t d_head"]
Frequencies = Float[Tensor, " pairs"]
Heads = Float[Tensor, "b h t width"]


def _apart(
    layer: Layer, x: Tokens, order: Int[Tensor, " t"], back: Int[Tensor, " t"] | None = None
) -> float:
    """How far the outputs are from being shuffled as the inputs are."""
    wanted = layer(x)[:, order if back is None else back]
    return (layer(x[:, order]) - wanted).abs().max().item()


def _swaps(t: int) -> list[Int[Tensor, " t"]]:
    orders = []
    for i in range(t):
        for j in range(i):
            order = torch.arange(t)
            order[i], order[j] = j, i
            orders.append(order)
    return orders


def _all_swaps(layer: Layer, x: Tokens, tolerance: float = 1e-5) -> bool:
    return all(_apart(layer, x, order) <= tolerance for order in _swaps(x.shape[1]))


def _turned(t: int) -> list[Int[Tensor, " t"]]:
    return [torch.arange(t).roll(k) for k in range(1, t)]


def _not_moved(layer: Layer, x: Tokens) -> bool:
    return all((layer(x[:, order]) - layer(x)).abs().max() <= 1e-5 for order in _swaps(x.shape[1]))


def _shuffled_back_wrongly(layer: Layer, x: Tokens) -> bool:
    orders = _turned(x.shape[1])
    return all(_apart(layer, x, order, order.argsort()) <= 1e-5 for order in orders)


def _first_and_last_swapped(layer: Layer, x: Tokens) -> bool:
    order = torch.arange(x.shape[1])
    order[0], order[-1] = x.shape[1] - 1, 0
    return _apart(layer, x, order) <= 1e-5


def _first_two_swapped(layer: Layer, x: Tokens) -> bool:
    order = torch.arange(x.shape[1])
    order[0], order[1] = 1, 0
    return _apart(layer, x, order) <= 1e-5


def _columns_shuffled(layer: Layer, x: Tokens) -> bool:
    flipped = (layer(x.flip(-1)) - layer(x).flip(-1)).abs().max()
    return bool(flipped <= 1e-5)


def _sum_compared(layer: Layer, x: Tokens) -> bool:
    return all(
        (layer(x[:, order]).sum(dim=1) - layer(x).sum(dim=1)).abs().max() <= 1e-5
        for order in _swaps(x.shape[1])
    )


IS_EQUIVARIANT = {
    "only_reversed": lambda layer, x: (
        _apart(layer, x, torch.arange(x.shape[1] - 1, -1, -1)) <= 1e-5
    ),
    "only_turned_round": lambda layer, x: all(
        _apart(layer, x, order) <= 1e-5 for order in _turned(x.shape[1])
    ),
    "ends_swapped_only": _first_and_last_swapped,
    "first_two_only": _first_two_swapped,
    "output_must_stay": _not_moved,
    "shuffled_back_wrongly": _shuffled_back_wrongly,
    "width_shuffled": _columns_shuffled,
    "first_sequence_alone": lambda layer, x: _all_swaps(lambda y: layer(y)[:1], x),
    "sums_compared": _sum_compared,
    "exact_equality": lambda layer, x: _all_swaps(layer, x, 0.0),
    "coarse_tolerance": lambda layer, x: _all_swaps(layer, x, 0.05),
    "equivariant_inverted": lambda layer, x: not _all_swaps(layer, x),
}


def _waves(
    positions: Positions,
    d_model: int,
    base: float = 10000.0,
    *,
    exponent: float = 2.0,
    sign: int = -1,
    unit: float = 1.0,
    shift: int = 0,
    one_more: bool = False,
) -> Float[Tensor, "t pairs"]:
    """Angles, in float64, right but for what a caller changes."""
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    over = d_model - 2 if one_more else d_model
    theta = base ** (sign * exponent * pair / max(over, 1))
    return unit * (positions[:, None].double() + shift) * theta


def _woven(first: Tensor, second: Tensor) -> Tensor:
    return torch.stack([first, second], dim=-1).flatten(-2)


def _sin_cos(angle: Tensor) -> Tensor:
    return _woven(angle.sin(), angle.cos())


def _own_frequency_each(positions, d_model, base=10000.0) -> Tensor:
    column = torch.arange(d_model, dtype=torch.float64)
    angle = positions[:, None].double() * base ** (-column / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def _twice_the_column(positions, d_model, base=10000.0) -> Tensor:
    column = torch.arange(d_model, dtype=torch.float64)
    angle = positions[:, None].double() * base ** (-2 * column / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def _halves(positions, d_model, base=10000.0) -> Tensor:
    angle = _waves(positions, d_model, base)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


def _rows_counted(positions, d_model, base=10000.0) -> Tensor:
    return _sin_cos(_waves(torch.arange(len(positions)), d_model, base))


def _cos_first(positions, d_model, base=10000.0) -> Tensor:
    angle = _waves(positions, d_model, base)
    return _woven(angle.cos(), angle.sin())


def _sines_only(positions, d_model, base=10000.0) -> Tensor:
    angle = _waves(positions, d_model, base)
    return _woven(angle.sin(), angle.sin())


SINUSOIDAL = {
    "i_for_2i": lambda *a: _sin_cos(_waves(*a, exponent=1.0)),
    "four_i_for_2i": lambda *a: _sin_cos(_waves(*a, exponent=4.0)),
    "frequency_each_column": _own_frequency_each,
    "twice_the_column": _twice_the_column,
    "cosine_first": _cos_first,
    "sines_then_cosines": _halves,
    "sines_only": _sines_only,
    "hands_get_faster": lambda *a: _sin_cos(_waves(*a, sign=1)),
    "degrees": lambda *a: _sin_cos(_waves(*a, unit=math.pi / 180)),
    "turns_for_radians": lambda *a: _sin_cos(_waves(*a, unit=2 * math.pi)),
    "positions_from_one": lambda *a: _sin_cos(_waves(*a, shift=1)),
    "rows_for_positions": _rows_counted,
    "base_ignored": lambda positions, d_model, base=10000.0: _sin_cos(_waves(positions, d_model)),
    "last_is_the_base": lambda *a: _sin_cos(_waves(*a, one_more=True)),
}


def _blocks(k: float, freqs: Frequencies, rows: Callable) -> Float[Tensor, "d_model d_model"]:
    """A matrix with the block `rows(cos, sin)` for each pair on its diagonal."""
    cos, sin = torch.cos(k * freqs), torch.sin(k * freqs)
    blocks = [torch.stack(rows(c, s)).reshape(2, 2) for c, s in zip(cos, sin, strict=True)]
    return torch.block_diag(*blocks)


def _by_halves(k: float, freqs: Frequencies) -> Float[Tensor, "d_model d_model"]:
    cos, sin = torch.cos(k * freqs).diag(), torch.sin(k * freqs).diag()
    return torch.cat([torch.cat([cos, sin], dim=1), torch.cat([-sin, cos], dim=1)])


def _right_turn(c: Tensor, s: Tensor) -> list[Tensor]:
    return [c, s, -s, c]


SHIFT = {
    "moves_backwards": lambda k, freqs: _blocks(k, freqs, lambda c, s: [c, -s, s, c]),
    "no_minus": lambda k, freqs: _blocks(k, freqs, lambda c, s: [c, s, s, c]),
    "sine_for_cosine": lambda k, freqs: _blocks(k, freqs, lambda c, s: [s, c, -c, s]),
    "mirror": lambda k, freqs: _blocks(k, freqs, lambda c, s: [c, s, s, -c]),
    "blocks_by_halves": _by_halves,
    "first_frequency_only": lambda k, freqs: _blocks(k, freqs[:1].expand(len(freqs)), _right_turn),
    "one_step_only": lambda k, freqs: _blocks(1, freqs, _right_turn),
    "frequencies_ignored": lambda k, freqs: _blocks(k, torch.ones_like(freqs), _right_turn),
    "divided_by_frequency": lambda k, freqs: _blocks(k, 1 / freqs, _right_turn),
}


def _places_beside(words: Tensor, places: Tensor, w: Tensor) -> list[Tensor]:
    d_place = places.shape[1]
    return [words @ w[d_place:], places @ w[:d_place]]


def _mean_moved(words: Tensor, places: Tensor, w: Tensor) -> list[Tensor]:
    d_word = words.shape[1]
    mean = places.mean(dim=0) @ w[d_word:]
    return [words @ w[:d_word] + mean, places @ w[d_word:] - mean]


def _whole_for_both(words: Tensor, places: Tensor, w: Tensor) -> list[Tensor]:
    wide = w.shape[0]
    padded = [torch.nn.functional.pad(x, (0, wide - x.shape[1])) for x in (words, places)]
    return [padded[0] @ w, padded[1] @ w]


AS_A_SUM = {
    "parts_of_w_swapped": _places_beside,
    "place_meets_word_rows": _whole_for_both,
    "mean_in_word_table": _mean_moved,
    "tables_swapped": lambda words, places, w: [
        places @ w[words.shape[1] :],
        words @ w[: words.shape[1]],
    ],
}
AS_A_CONCATENATION = {
    "beside_not_above": lambda w: torch.cat([w, w], dim=1),
    "half_each": lambda w: torch.cat([w, w]) / 2,
    "zeros_below": lambda w: torch.cat([w, torch.zeros_like(w)]),
    "rows_twice": lambda w: w.repeat_interleave(2, dim=0),
}


def _steps_back(t: int, s: int, start: int | None = None) -> Int[Tensor, "t s"]:
    start = s - t if start is None else start
    return torch.arange(start, start + t)[:, None] - torch.arange(s)


def _bucket(
    r: Int[Tensor, "t s"],
    n_buckets: int,
    max_distance: int,
    *,
    rounding: Callable = torch.floor,
    half: int | None = None,
    inner: bool = True,
    top: int | None = None,
    keep_sign: bool = False,
) -> Int[Tensor, "t s"]:
    """T5's rule for a decoder, but for what a caller changes."""
    half = n_buckets // 2 if half is None else half
    r = r.abs() if keep_sign else r.clamp(min=0)
    ratio = r.clamp(min=half).double() / (half if inner else 1)
    scale = math.log(max_distance / (half if inner else 1))
    coarse = half + rounding(ratio.log() / scale * (n_buckets - half)).long()
    return torch.where(r < half, r, coarse.clamp(max=(n_buckets if top is None else top) - 1))


def _bias(
    table: Tensor, t: int, s: int, max_distance: int, *, start: int | None = None, **how
) -> Float[Tensor, "h t s"]:
    return table[_bucket(_steps_back(t, s, start), len(table), max_distance, **how)].permute(
        2, 0, 1
    )


def _two_way(table: Tensor, t: int, s: int, max_distance: int) -> Float[Tensor, "h t s"]:
    r, one_way = _steps_back(t, s), len(table) // 2
    if one_way < 2:
        raise ValueError("too few buckets for two directions")
    bucket = _bucket(r.abs(), one_way, max_distance) + (r < 0) * one_way
    return table[bucket].permute(2, 0, 1)


def _looks_forward(table: Tensor, t: int, s: int, max_distance: int) -> Float[Tensor, "h t s"]:
    return table[_bucket(-_steps_back(t, s), len(table), max_distance)].permute(2, 0, 1)


def _all_exact(table: Tensor, t: int, s: int, max_distance: int) -> Float[Tensor, "h t s"]:
    r = _steps_back(t, s).clamp(min=0, max=len(table) - 1)
    return table[r].permute(2, 0, 1)


BUCKET_BIAS = {
    "buckets_of_an_encoder": _two_way,
    "keys_ahead_bucketed": _looks_forward,
    "both_sides_alike": lambda *a: _bias(*a, keep_sign=True),
    "queries_from_zero": lambda table, t, s, d: _bias(table, t, s, d, start=0),
    "rounded_up": lambda *a: _bias(*a, rounding=torch.ceil),
    "rounded_to_nearest": lambda *a: _bias(*a, rounding=torch.round),
    "no_wide_buckets": _all_exact,
    "log_of_the_distance": lambda *a: _bias(*a, inner=False),
    "last_bucket_unused": lambda table, t, s, d: _bias(table, t, s, d, top=len(table) - 1),
    "heads_last": lambda *a: _bias(*a).permute(1, 2, 0),
    "axes_reshaped": lambda *a: _bias(*a).permute(1, 2, 0).reshape(_bias(*a).shape),
}


def _slopes(n_heads: int, first: int = 1) -> Float[Tensor, " h"]:
    return 2.0 ** (-8 * torch.arange(first, first + n_heads, dtype=torch.float64) / n_heads)


def _sloped(slopes: Tensor, distance: Tensor) -> Float[Tensor, "h t s"]:
    return (-slopes[:, None, None] * distance).float()


ALIBI = {
    "further_is_better": lambda h, t, s: -_sloped(_slopes(h), _steps_back(t, s).abs()),
    "keys_ahead_raised": lambda h, t, s: _sloped(_slopes(h), _steps_back(t, s)),
    "keys_ahead_free": lambda h, t, s: _sloped(_slopes(h), _steps_back(t, s).clamp(min=0)),
    "heads_from_zero": lambda h, t, s: _sloped(_slopes(h, 0), _steps_back(t, s).abs()),
    "halved_each_head": lambda h, t, s: _sloped(
        2.0 ** -torch.arange(1.0, h + 1), _steps_back(t, s).abs()
    ),
    "slopes_reversed": lambda h, t, s: _sloped(_slopes(h).flip(0), _steps_back(t, s).abs()),
    "queries_from_zero": lambda h, t, s: _sloped(_slopes(h), _steps_back(t, s, 0).abs()),
    "one_slope_for_all": lambda h, t, s: _sloped(_slopes(h)[:1].expand(h), _steps_back(t, s).abs()),
    "slopes_in_e": lambda h, t, s: _sloped(
        torch.exp(-8 * torch.arange(1, h + 1) / h), _steps_back(t, s).abs()
    ),
}


def _turn(
    x: Rows,
    positions: Positions,
    freqs: Frequencies,
    rule: Callable,
    *,
    take: str = "woven",
    put: str = "woven",
) -> Rows:
    """Pairs taken and put back in one of two orders, turned by a rule."""
    angle = positions[:, None].double() * freqs.double()
    pairs = (x[..., 0::2], x[..., 1::2]) if take == "woven" else x.chunk(2, dim=-1)
    first, second = rule(*pairs, angle.cos().to(x.dtype), angle.sin().to(x.dtype))
    return _woven(first, second) if put == "woven" else torch.cat([first, second], dim=-1)


def _rotation(a: Tensor, b: Tensor, c: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    return a * c - b * s, a * s + b * c


def _rotated(x: Rows, positions: Positions, freqs: Frequencies) -> Rows:
    return _turn(x, positions, freqs, _rotation)


def _with(rule: Callable = _rotation, **how) -> Callable:
    return lambda x, positions, freqs: _turn(x, positions, freqs, rule, **how)


def _angles_woven(x: Rows, positions: Positions, freqs: Frequencies) -> Rows:
    """Angles for neighbours, but the partner is half a head away."""
    angle = (positions[:, None].double() * freqs.double()).repeat_interleave(2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    partner = torch.cat([-second, first], dim=-1)
    return x * angle.cos().to(x.dtype) + partner * angle.sin().to(x.dtype)


def _added(x: Rows, positions: Positions, freqs: Frequencies) -> Rows:
    return x + _sin_cos(positions[:, None].double() * freqs.double()).to(x.dtype)


ROPE = {
    "turned_clockwise": _with(lambda a, b, c, s: (a * c + b * s, b * c - a * s)),
    "pairs_half_apart": _with(take="halves", put="halves"),
    "read_woven_put_halves": _with(put="halves"),
    "read_halves_put_woven": _with(take="halves"),
    "angles_and_pairs_mixed": _angles_woven,
    "sine_cosine_swapped": _with(lambda a, b, c, s: (a * s - b * c, a * c + b * s)),
    "rope_no_minus": _with(lambda a, b, c, s: (a * c + b * s, a * s + b * c)),
    "first_number_overwritten": _with(
        lambda a, b, c, s: (a * c - b * s, (a * c - b * s) * s + b * c)
    ),
    "one_angle_for_all_pairs": lambda x, positions, freqs: _rotated(
        x, positions, freqs[:1].expand(len(freqs))
    ),
    "rows_for_positions": lambda x, positions, freqs: _rotated(x, torch.arange(x.shape[-2]), freqs),
    "rope_frequencies_ignored": lambda x, positions, freqs: _rotated(
        x, positions, torch.ones_like(freqs)
    ),
    "waves_added": _added,
    "positions_from_one": lambda x, positions, freqs: _rotated(x, positions + 1, freqs),
}


def _in_turn(weight: Tensor, n_heads: int, cut: tuple[int, int]) -> Tensor:
    rows = weight.reshape(n_heads, *cut, *weight.shape[1:])
    return rows.transpose(1, 2).reshape(weight.shape)


def _odd_rows_first(weight: Tensor, n_heads: int) -> Tensor:
    heads = weight.reshape(n_heads, -1, 2, *weight.shape[1:])
    return heads.flip(2).transpose(1, 2).reshape(weight.shape)


LAYOUTS = {
    "converted_back": lambda w, n_heads: _in_turn(w, n_heads, (2, len(w) // n_heads // 2)),
    "heads_mixed": lambda w, n_heads: _in_turn(w, 1, (len(w) // 2, 2)),
    "heads_mixed_and_back": lambda w, n_heads: _in_turn(w, 1, (2, len(w) // 2)),
    "not_converted": lambda w, n_heads: w,
    "odd_rows_first": _odd_rows_first,
    "heads_interleaved_rows": lambda w, n_heads: _in_turn(w, 1, (len(w) // n_heads, n_heads)),
}


def _attend(q: Heads, k: Heads, v: Heads, diagonal: int) -> Heads:
    """Attention to the keys up to a diagonal; there is always one in sight."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    later = ~torch.ones(scores.shape[-2:]).tril(diagonal).bool()
    return scores.masked_fill(later, -math.inf).softmax(dim=-1) @ v


def _go_on(
    q: Heads,
    k: Heads,
    v: Heads,
    kept_k: Heads,
    kept_v: Heads,
    freqs: Frequencies,
    *,
    start: int | None = None,
    late: int = 0,
    turn_q: bool = True,
    turn_k: bool = True,
    turn_v: bool = False,
    kept_again: bool = False,
    keep_unturned: bool = False,
    scores_again: bool = False,
    mask: str = "bottom right",
    new_first: bool = False,
    new_only: bool = False,
) -> list[Heads]:
    """What is right, but for the one thing that a caller changes."""
    n, t = kept_k.shape[-2], q.shape[-2]
    positions = torch.arange(n, n + t) if start is None else torch.arange(start, start + t)
    positions = positions + late
    q = _rotated(q, positions, freqs) if turn_q else q
    plain_k = k
    k = _rotated(k, positions, freqs) if turn_k else k
    v = _rotated(v, positions, freqs) if turn_v else v
    old_k = _rotated(kept_k, torch.arange(n), freqs) if kept_again else kept_k
    order = (lambda old, new: [new, old]) if new_first else (lambda old, new: [old, new])
    all_k = torch.cat(order(old_k, k), dim=-2)
    all_v = torch.cat(order(kept_v, v), dim=-2)
    diagonal = {"bottom right": n, "top left": 0, "none": n + t}[mask]
    seen_k = _rotated(all_k, torch.arange(n + t), freqs) if scores_again else all_k
    out = _attend(q, k, v, 0) if new_only else _attend(q, seen_k, all_v, diagonal)
    if keep_unturned:
        all_k = torch.cat([old_k, plain_k], dim=-2)
    return [out, all_k, all_v]


def _go_on_with(**how) -> Callable:
    return lambda *case: _go_on(*case, **how)


GO_ON = {
    "counted_from_zero_again": _go_on_with(start=0),
    "one_position_late": _go_on_with(late=1),
    "one_position_early": _go_on_with(late=-1),
    "kept_turned_again": _go_on_with(kept_again=True),
    "all_turned_again": _go_on_with(scores_again=True),
    "values_turned_too": _go_on_with(turn_v=True),
    "query_not_turned": _go_on_with(turn_q=False),
    "new_key_not_turned": _go_on_with(turn_k=False),
    "kept_unturned": _go_on_with(keep_unturned=True),
    "top_left_mask": _go_on_with(mask="top left"),
    "no_mask_among_new": _go_on_with(mask="none"),
    "new_ones_in_front": _go_on_with(new_first=True),
    "cache_not_looked_at": _go_on_with(new_only=True),
}

INTERPOLATE = {
    "made_faster": lambda freqs, factor: freqs * factor,
    "slowed_twice": lambda freqs, factor: freqs / factor**2,
}


def _ntk(freqs: Frequencies, power: Tensor, factor: float) -> Frequencies:
    return freqs / factor**power


NTK_AWARE = {
    "all_slowed_alike": lambda freqs, factor: freqs / factor,
    "last_not_fully_slowed": lambda freqs, factor: _ntk(
        freqs, torch.arange(len(freqs)) / len(freqs), factor
    ),
    "pairs_from_one": lambda freqs, factor: _ntk(
        freqs, torch.arange(1, len(freqs) + 1) / len(freqs), factor
    ),
    "fast_ones_slowed": lambda freqs, factor: _ntk(
        freqs, torch.arange(len(freqs)).flip(0) / (len(freqs) - 1), factor
    ),
    "made_faster": lambda freqs, factor: _ntk(
        freqs, -torch.arange(len(freqs)) / (len(freqs) - 1), factor
    ),
    "factor_grows_evenly": lambda freqs, factor: (
        freqs / (1 + (factor - 1) * torch.arange(len(freqs)) / (len(freqs) - 1))
    ),
}


def _parts(
    freqs: Frequencies,
    factor: float,
    length: float,
    slow: float,
    fast: float,
    *,
    full_turn: float = 2 * math.pi,
    inverted: bool = False,
    clamped: bool = True,
    hard: bool = False,
) -> Frequencies:
    turns = length * freqs / full_turn
    gamma = (turns - slow) / (fast - slow)
    gamma = gamma.clamp(0, 1) if clamped else gamma
    gamma = (turns > slow).to(freqs) if hard else gamma
    gamma = 1 - gamma if inverted else gamma
    return gamma * freqs + (1 - gamma) * freqs / factor


def _slowed_by_a_mixture(freqs, factor, length, slow, fast) -> Frequencies:
    gamma = ((length * freqs / (2 * math.pi) - slow) / (fast - slow)).clamp(0, 1)
    return freqs / (gamma + (1 - gamma) * factor)


BY_PARTS = {
    "fast_ones_slowed": lambda *a: _parts(*a, inverted=True),
    "radians_for_turns": lambda *a: _parts(*a, full_turn=1.0),
    "gamma_not_clamped": lambda *a: _parts(*a, clamped=False),
    "no_mixture": lambda *a: _parts(*a, hard=True),
    "factor_mixed": _slowed_by_a_mixture,
    "all_slowed_alike": lambda freqs, factor, *rest: freqs / factor,
}
