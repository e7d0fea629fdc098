"""Wrong answers to the exercises of chapter 05, so that a check can name what it sees.

One dictionary an exercise: a key of `plainformer.messages.MISTAKES`, and the function that somebody
with this mistake would have written. No entry is right; all look reasonable.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, product

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Tokens = Float[Tensor, "b t d_model"]
Weight = Float[Tensor, "d_in d_out"]
Kept = tuple[Tensor, Tensor]
Heads = Float[Tensor, "b h t d"]
Mask = Bool[Tensor, "..."]
INF = float("inf")


def _back(t: int, s: int, shift: int = 0) -> Bool[Tensor, "t s"]:
    return torch.ones(t, s, dtype=torch.bool).tril(s - t + shift)


def _weights(scores: Tensor, mask: Mask | None) -> Tensor:
    if mask is None:
        return scores.softmax(dim=-1)
    return scores.masked_fill(~mask, -INF).softmax(dim=-1).nan_to_num()


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Mask | None) -> Tensor:
    return _weights(q @ k.mT / q.shape[-1] ** 0.5, mask) @ v


def _read_on(
    x: Tokens,
    cache: Kept | None,
    w_q: Weight,
    w_k: Weight,
    w_v: Weight,
    turn: Callable,
    *,
    mask: Callable = _back,
    restart: bool = False,
    again: bool = False,
    turned: str = "qk",
    newest_first: bool = False,
    forget: bool = False,
    all_ask: bool = False,
) -> tuple[Tensor, Kept]:
    """What is right, but for the one thing that a caller changes."""
    t, old = x.shape[1], 0 if cache is None else cache[0].shape[1]
    positions = torch.arange(t) + (0 if restart else old)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    q = turn(q, positions) if "q" in turned else q
    k = turn(k, positions) if "k" in turned else k
    v = turn(v, positions) if "v" in turned else v
    if cache is not None and not forget:
        old_k = turn(cache[0], torch.arange(old)) if again else cache[0]
        sides = [(old_k, k), (cache[1], v)]
        k, v = (torch.cat([b, a] if newest_first else [a, b], dim=1) for a, b in sides)
    out = _attend(q, k, v, mask(t, k.shape[1]))
    if all_ask and cache is not None:  # as if earlier queries had been kept and asked again
        out = torch.cat([out.new_zeros(len(out), k.shape[1] - t, out.shape[-1]), out], dim=1)
    return out, (k, v)


def _old_tokens_only(x, cache, *rest) -> tuple[Tensor, Kept]:
    return _read_on(x, cache, *rest, mask=lambda t, s: _back(t, s, -1))


def _old_not_handed_on(x, cache, *rest) -> tuple[Tensor, Kept]:
    out, (k, v) = _read_on(x, cache, *rest)
    return out, (k[:, -x.shape[1] :], v[:, -x.shape[1] :])


def _no_mask_later(x, cache, *rest) -> tuple[Tensor, Kept]:
    return _read_on(x, cache, *rest, mask=_back if cache is None else _no_mask)


def _no_mask(t: int, s: int) -> Bool[Tensor, "t s"]:
    return torch.ones(t, s, dtype=torch.bool)


def _top_left(t: int, s: int) -> Bool[Tensor, "t s"]:
    return torch.ones(t, s, dtype=torch.bool).tril()


READ_ON = {
    "positions_restart": lambda *a: _read_on(*a, restart=True),
    "keys_turned_again": lambda *a: _read_on(*a, again=True),
    "keys_not_turned": lambda *a: _read_on(*a, turned="q"),
    "nothing_turned": lambda *a: _read_on(*a, turned=""),
    "old_not_handed_on": _old_not_handed_on,
    "queries_not_turned": lambda *a: _read_on(*a, turned="k"),
    "values_turned": lambda *a: _read_on(*a, turned="qkv"),
    "piece_mask_top_left": lambda *a: _read_on(*a, mask=_top_left),
    "piece_without_mask": lambda *a: _read_on(*a, mask=_no_mask),
    "later_piece_without_mask": _no_mask_later,
    "newest_key_hidden": _old_tokens_only,
    "newest_in_front": lambda *a: _read_on(*a, newest_first=True),
    "cache_not_read": lambda *a: _read_on(*a, forget=True),
    "old_queries_ask_again": lambda *a: _read_on(*a, all_ask=True),
}

# What is in the cache does not tell whether the keys were turned later, for each look.
KEPT = {k: wrong for k, wrong in READ_ON.items() if k not in ("keys_not_turned", "nothing_turned")}
KEPT["keys_kept_unturned"] = READ_ON["keys_not_turned"]


def _every_way(n: int) -> list[list[int]]:
    ways = []
    for cuts in product([False, True], repeat=n - 1):
        ends = [0, *(i for i in range(1, n) if cuts[i - 1]), n]
        ways.append([end - start for start, end in pairwise(ends)])
    return ways


def _agree(
    full: Callable,
    step: Callable,
    x: Tokens,
    ways: Callable[[int], Sequence[list[int]]] = _every_way,
    *,
    tolerance: float = 1e-4,
    which: tuple = (),
    hand_on: bool = True,
    last_only: bool = False,
    nan_passes: bool = False,
    distance: Callable = torch.abs,
) -> bool:
    want = full(x)
    for way in ways(x.shape[1]):
        cache, outs = None, []
        for piece in x.split(way, dim=1):
            out, after = step(piece, cache)
            cache = after if hand_on else None
            outs.append(out)
        got = outs[-1][:, -1:] if last_only else torch.cat(outs, dim=1)
        right = want[:, -1:] if last_only else want
        if got.shape != right.shape:
            return False
        apart = distance(got - right)[which]
        if (apart > tolerance).any() if nan_passes else not (apart <= tolerance).all():
            return False
    return True


def _one_by_one(n: int) -> list[list[int]]:
    return [[1] * n]


def _prompt_then_one_by_one(n: int) -> list[list[int]]:
    return [[i] + [1] * (n - i) for i in range(1, n + 1)]


def _two_pieces(n: int) -> list[list[int]]:
    return [[i, n - i] for i in range(1, n)]


def _like_pieces(n: int) -> list[list[int]]:
    ways = [[size] * (n // size) + [n % size] for size in range(1, n + 1)]
    return [[length for length in way if length] for way in ways]


def _summed(apart: Tensor) -> Tensor:
    return apart.sum().abs()


def _mean(apart: Tensor) -> Tensor:
    return apart.abs().mean()


def _one_way_is_enough(full: Callable, step: Callable, x: Tokens) -> bool:
    return any(_agree(full, step, x, lambda n, way=way: [way]) for way in _every_way(x.shape[1]))


AGREES = {
    "one_by_one_only": lambda full, step, x: _agree(full, step, x, _one_by_one),
    "only_one_piece": lambda full, step, x: _agree(full, step, x, lambda n: [[n]]),
    "two_pieces_only": lambda full, step, x: _agree(full, step, x, _two_pieces),
    "prompt_then_one_by_one": lambda full, step, x: _agree(full, step, x, _prompt_then_one_by_one),
    "last_output_only": lambda full, step, x: _agree(full, step, x, last_only=True),
    "first_sentence_compared": lambda full, step, x: _agree(full, step, x, which=(slice(1),)),
    "cache_not_handed_on": lambda full, step, x: _agree(full, step, x, hand_on=False),
    "few_pieces_only": lambda full, step, x: _agree(
        full, step, x, lambda n: [way for way in _every_way(n) if len(way) <= 3]
    ),
    "four_pieces_only": lambda full, step, x: _agree(
        full, step, x, lambda n: [way for way in _every_way(n) if len(way) <= 4]
    ),
    "like_pieces_only": lambda full, step, x: _agree(full, step, x, _like_pieces),
    "differences_cancel": lambda full, step, x: _agree(full, step, x, distance=_summed),
    "mean_difference": lambda full, step, x: _agree(full, step, x, distance=_mean),
    "one_way_is_enough": _one_way_is_enough,
    "rounding_is_a_fault": lambda full, step, x: _agree(full, step, x, tolerance=0.0),
    "small_faults_pass": lambda full, step, x: _agree(full, step, x, tolerance=0.01),
    "nan_passes": lambda full, step, x: _agree(full, step, x, nan_passes=True),
    "agreement_inverted": lambda full, step, x: not _agree(full, step, x),
}


def _sizes(
    b: int, s: int, n_layers: int, h: int, g: int, d_head: int, bits: int, **wrong: float
) -> dict[str, int]:
    """The four counts, with one factor of the numbers or the bytes changed."""
    numbers = int(2 * n_layers * g * d_head * wrong.get("numbers", 1))
    sequences, wide = wrong.get("sequences", b), wrong.get("wide", bits)
    room = int(wrong.get("room", 2**33))
    return {
        "numbers_per_token": numbers,
        "bytes": sequences * s * numbers * wide // 8,
        "times_smaller": h // g,
        "longest": room * 8 // (wrong.get("share_room", sequences) * numbers * wide),
    }


CACHE_SIZE = {
    "keys_only_counted": lambda *a: _sizes(*a, numbers=0.5),
    "queries_counted_as_kept": lambda *a: _sizes(*a, numbers=1 + a[3] / (2 * a[4])),
    "three_kept": lambda *a: _sizes(*a, numbers=1.5),
    "query_heads_counted": lambda *a: _sizes(*a, numbers=a[3] / a[4]),
    "one_layer_counted": lambda *a: _sizes(*a, numbers=1 / a[2]),
    "bits_for_bytes": lambda *a: _sizes(*a, wide=8 * a[6]),
    "sixteen_bits_assumed": lambda *a: _sizes(*a, wide=16),
    "one_sequence_counted": lambda *a: _sizes(*a, sequences=1),
    "room_for_one_sequence": lambda *a: _sizes(*a, share_room=1),
    "decimal_gigabytes": lambda *a: _sizes(*a, room=8 * 10**9),
    "ratio_upside_down": lambda *a: _sizes(*a) | {"times_smaller": a[4] / a[3]},
}


def _bound(
    b, t, s, h, g, d_head, bits, peak, bandwidth, *, flops=1.0, moved=1.0, seconds=max, swap=False
) -> dict:
    """The bound, with a factor of FLOPs or bytes, or the way to a time, changed."""
    flops = round(4 * b * h * t * s * d_head * flops)
    moved = round(2 * b * g * s * d_head * bits / 8 * moved)
    arithmetic, reading = flops / peak, moved / bandwidth
    names = ("memory", "compute") if swap else ("compute", "memory")
    return {
        "flops": flops,
        "bytes": moved,
        "intensity": flops / moved,
        "seconds": seconds(arithmetic, reading),
        "decides": names[0] if arithmetic > reading else names[1],
    }


ROOFLINE = {
    "one_flop_each": lambda *a: _bound(*a, flops=0.5),
    "groups_share_the_work": lambda *a: _bound(*a, flops=a[4] / a[3]),
    "every_head_reads_anew": lambda *a: _bound(*a, moved=a[3] / a[4]),
    "every_query_reads_anew": lambda *a: _bound(*a, moved=a[1]),
    "batch_shares_the_cache": lambda *a: _bound(*a, moved=1 / a[0]),
    "keys_only_read": lambda *a: _bound(*a, moved=0.5),
    "bits_for_bytes": lambda *a: _bound(*a, moved=8),
    "times_added": lambda *a: _bound(*a, seconds=lambda x, y: x + y),
    "shorter_time_taken": lambda *a: _bound(*a, seconds=min),
    "limits_swapped": lambda *a: _bound(*a, swap=True),
    "intensity_upside_down": lambda *a: (
        _bound(*a) | {"intensity": _bound(*a)["bytes"] / _bound(*a)["flops"]}
    ),
}


def _grouped(
    q: Heads,
    k: Heads,
    v: Heads,
    mask: Mask | None = None,
    *,
    spread: Callable | None = None,
    width: int | None = None,
    fill: float | None = None,
) -> Heads:
    """What is right, but for the one thing that a caller changes."""
    n = q.shape[1] // k.shape[1]
    spread = spread or (lambda x: x.repeat_interleave(n, dim=1))
    scores = q @ spread(k).mT / (width or q.shape[-1]) ** 0.5
    if mask is not None and fill is not None:
        return scores.masked_fill(~mask, fill).softmax(dim=-1) @ spread(v)
    return _weights(scores, mask) @ spread(v)


def _tiled(q, k, v, mask=None) -> Heads:
    n = q.shape[1] // k.shape[1]
    return _grouped(q, k, v, mask, spread=lambda x: x.repeat(1, n, 1, 1))


def _keys_tiled(q, k, v, mask=None) -> Heads:
    n = q.shape[1] // k.shape[1]
    order = torch.arange(k.shape[1]).repeat(n)  # then grouped as if it were right
    return _grouped(q, k[:, order], v.repeat_interleave(n, dim=1), mask, spread=lambda x: x)


def _first_head(q, k, v, mask=None) -> Heads:
    h = q.shape[1]
    return _grouped(q, k, v, mask, spread=lambda x: x[:, :1].expand(-1, h, -1, -1))


def _averaged_heads(q, k, v, mask=None) -> Heads:
    h = q.shape[1]
    return _grouped(
        q, k, v, mask, spread=lambda x: x.mean(dim=1, keepdim=True).expand(-1, h, -1, -1)
    )


def _averaged_queries(q, k, v, mask=None) -> Heads:
    g, n = k.shape[1], q.shape[1] // k.shape[1]
    q = q.unflatten(1, (g, n)).mean(dim=2, keepdim=True).expand(-1, -1, n, -1, -1).flatten(1, 2)
    return _grouped(q, k, v, mask)


def _mask_inverted(q, k, v, mask=None) -> Heads:
    return _grouped(q, k, v, None if mask is None else ~mask)


GROUPED = {
    "heads_tiled": _tiled,
    "keys_tiled_only": _keys_tiled,
    "first_kv_head_for_all": _first_head,
    "kv_heads_averaged": _averaged_heads,
    "queries_averaged": _averaged_queries,
    "unscaled": lambda *a: _grouped(*a, width=1),
    "divided_by_d_head": lambda *a: _grouped(*a, width=a[0].shape[-1] ** 2),
    "divided_by_root_d_value": lambda *a: _grouped(*a, width=a[2].shape[-1]),
    "mask_ignored": lambda *a: _grouped(*a[:3]),
    "mask_inverted": _mask_inverted,
    "empty_row_nan": lambda *a: _grouped(*a, fill=-INF),
    "empty_row_uniform": lambda *a: _grouped(*a, fill=torch.finfo(a[0].dtype).min),
}


def _cut(w: Weight, *sizes: int) -> Tensor:
    return w.unflatten(1, sizes)


POOLED = {
    "neighbours_not_pooled": lambda w, h, g: _cut(w, h // g, g, -1).mean(dim=1).flatten(1),
    "heads_summed": lambda w, h, g: _cut(w, g, h // g, -1).sum(dim=2).flatten(1),
    "first_of_group_kept": lambda w, h, g: _cut(w, g, h // g, -1)[:, :, 0].flatten(1),
    "last_of_group_kept": lambda w, h, g: _cut(w, g, h // g, -1)[:, :, -1].flatten(1),
    "neighbouring_columns_pooled": lambda w, h, g: w.unflatten(1, (-1, h // g)).mean(dim=2),
    "first_heads_kept": lambda w, h, g: w[:, : w.shape[1] * g // h].clone(),
    "averages_for_every_head": lambda w, h, g: (
        _cut(w, g, h // g, -1).mean(dim=2, keepdim=True).expand(-1, -1, h // g, -1).flatten(1)
    ),
}


def _from_latents(
    q, q_turned, latent, k_turned, w_uk, w_uv, *, width=None, mask=_back, parts=(1.0, 1.0)
) -> Heads:
    """What is right, but for the one thing that a caller changes."""
    latent, k_turned = latent[:, None], k_turned[:, None]
    scores = parts[0] * q @ (latent @ w_uk).mT + parts[1] * q_turned @ k_turned.mT
    scores = scores / (width or q.shape[-1] + q_turned.shape[-1]) ** 0.5
    return _weights(scores, mask(q.shape[2], latent.shape[2])) @ (latent @ w_uv)


def _each_divided_alone(q, q_turned, *rest) -> Heads:
    parts = (q.shape[-1] ** -0.5, q_turned.shape[-1] ** -0.5)
    return _from_latents(q, q_turned, *rest, width=1, parts=parts)


def _keys_handed_over(q, q_turned, latent, k_turned, w_uk, w_uv) -> Heads:
    return _from_latents(q, q_turned, latent, k_turned, w_uk, w_uk)


def _first_head_projects_all(q, q_turned, latent, k_turned, w_uk, w_uv) -> Heads:
    return _from_latents(q, q_turned, latent, k_turned, w_uk[:1], w_uv[:1])


FROM_LATENTS = {
    "root_of_content_only": lambda *a: _from_latents(*a, width=a[0].shape[-1]),
    "root_of_latent_width": lambda *a: _from_latents(*a, width=a[2].shape[-1] + a[1].shape[-1]),
    "unscaled": lambda *a: _from_latents(*a, width=1),
    "parts_divided_alone": _each_divided_alone,
    "position_left_out": lambda *a: _from_latents(*a, parts=(1.0, 0.0)),
    "content_left_out": lambda *a: _from_latents(*a, parts=(0.0, 1.0)),
    "keys_handed_over": _keys_handed_over,
    "first_head_projects_all": _first_head_projects_all,
    "mask_ignored": lambda *a: _from_latents(*a, mask=_no_mask),
    "piece_mask_top_left": lambda *a: _from_latents(*a, mask=_top_left),
    "newest_key_hidden": lambda *a: _from_latents(*a, mask=lambda t, s: _back(t, s, -1)),
}


def _absorbed(
    q, q_turned, ask, fetch, w_uk, w_uv, *, width=None, up=None, first=False, shares=True, out=None
) -> Heads:
    """What is right, but for the one thing that a caller changes."""
    content = q @ (w_uk.mT if up is None else up)
    parts = [q_turned, content] if first else [content, q_turned]
    scores = ask(torch.cat(parts, dim=-1))
    scores = scores / (width or q.shape[-1] + q_turned.shape[-1]) ** 0.5
    return fetch(scores.softmax(dim=-1) if shares else scores) @ (w_uv if out is None else out)


def _position_not_asked(q, q_turned, *rest) -> Heads:
    return _absorbed(q, 0 * q_turned, *rest, width=q.shape[-1] + q_turned.shape[-1])


ABSORBED = {
    "root_of_long_query": lambda *a: _absorbed(*a, width=a[4].shape[1] + a[1].shape[-1]),
    "root_of_content_only": lambda *a: _absorbed(*a, width=a[0].shape[-1]),
    "unscaled": lambda *a: _absorbed(*a, width=1),
    "up_not_turned_round": lambda *a: _absorbed(*a, up=a[4]),
    "query_not_lengthened": lambda *a: _absorbed(*a, up=torch.eye(a[0].shape[-1])),
    "values_matrix_asks": lambda *a: _absorbed(*a, up=a[5].mT),
    "position_first": lambda *a: _absorbed(*a, first=True),
    "position_left_out": _position_not_asked,
    "scores_mixed": lambda *a: _absorbed(*a, shares=False),
    "keys_handed_over": lambda *a: _absorbed(*a, out=a[4]),
    "latents_handed_over": lambda *a: _absorbed(*a, out=torch.eye(a[4].shape[1])),
}
