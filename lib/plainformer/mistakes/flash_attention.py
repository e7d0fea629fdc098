"""Wrong answers to the exercises of chapter 07, so that a check can name what it sees.

One dictionary an exercise: a key of `plainformer.messages.MISTAKES`, and the function that somebody
with this mistake would have written. No entry is right; all look reasonable.
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

Rows = Float[Tensor, " t"]
Scores = Float[Tensor, "t s"]
Matrix = Float[Tensor, "n d"]
Load = Callable[[int], tuple[Matrix, Matrix]]
INF = float("inf")


def _meet(m: Rows, l: Rows, scores: Scores, *, fault: str) -> tuple[Rows, Rows]:  # noqa: E741
    """What is right, but for the one fault."""
    best = scores.amax(dim=-1)
    if fault == "one_largest_for_all":
        best = best.max().expand_as(best)
    new = best if fault == "largest_of_piece_only" else torch.maximum(m, best)
    if fault == "largest_from_zero":
        new = new.clamp(min=0.0)
    safe = new if fault == "empty_piece_nan" else new.masked_fill(new == -INF, 0.0)
    factor = (m - safe).exp()
    if fault == "rescaled_upside_down":
        factor = torch.where(m == -INF, 0.0, (safe - m).exp())
    if fault == "old_sum_not_rescaled":
        factor = torch.ones_like(m)
    relative = scores - safe[:, None]
    if fault == "new_sum_by_own_largest":
        relative = scores - best.masked_fill(best == -INF, 0.0)[:, None]
    if fault == "largest_not_taken_off":
        relative, factor = scores, torch.ones_like(m)
    return new, factor * l + relative.exp().sum(dim=-1)


MEET = {
    fault: partial(_meet, fault=fault)
    for fault in (
        "old_sum_not_rescaled",
        "rescaled_upside_down",
        "largest_from_zero",
        "largest_of_piece_only",
        "new_sum_by_own_largest",
        "largest_not_taken_off",
        "one_largest_for_all",
        "empty_piece_nan",
    )
}


def _merged(o: Tensor, lse: Tensor, *, fault: str) -> tuple[Tensor, Tensor]:
    total = lse.logsumexp(dim=0)
    weights = lse.softmax(dim=0).nan_to_num(nan=0.0)
    if fault == "parts_averaged":
        weights = torch.full_like(lse, 1 / len(lse))
    if fault == "parts_added":
        weights = torch.ones_like(lse)
    if fault == "weighted_by_lse":
        weights = lse / lse.sum(dim=0)
    if fault == "shared_over_queries":
        weights = lse.softmax(dim=1)
    if fault == "powers_overflow":
        weights = (lse.exp() / lse.exp().sum(dim=0)).nan_to_num(nan=0.0, posinf=INF)
        weights = torch.where(lse.exp().sum(dim=0) == INF, torch.nan, weights)
        total = lse.exp().sum(dim=0).log()
    if fault == "empty_row_nan":
        weights = lse.softmax(dim=0)
    if fault == "largest_lse_only":
        total = lse.amax(dim=0)
    if fault == "lse_added":
        total = lse.sum(dim=0)
    if fault == "lse_averaged":
        total = lse.mean(dim=0)
    largest = lse.amax(dim=0).masked_fill(lse.amax(dim=0) == -INF, 0.0)
    if fault == "lse_without_largest":
        total = total - largest
    if fault == "sums_not_divided":
        weights = (lse - largest).exp()
    return (weights[..., None] * o).sum(dim=0), total


MERGE = {
    fault: partial(_merged, fault=fault)
    for fault in (
        "parts_averaged",
        "parts_added",
        "weighted_by_lse",
        "shared_over_queries",
        "powers_overflow",
        "empty_row_nan",
        "largest_lse_only",
        "lse_added",
        "lse_averaged",
        "lse_without_largest",
        "sums_not_divided",
    )
}


def _forward(
    q: Matrix, k: Matrix, v: Matrix, rows: int, columns: int, *, fault: str
) -> tuple[Matrix, Rows]:
    """Tiles of all queries at once: how the queries are cut changes nothing."""
    scale = 1.0 if fault == "unscaled" else q.shape[1] ** -0.5
    if fault == "divided_by_d_head":
        scale = 1 / q.shape[1]
    m, total = q.new_full((len(q), 1), -INF), q.new_zeros(len(q), 1)
    weighted = q.new_zeros(len(q), v.shape[1])
    if fault == "largest_from_zero":
        m = torch.zeros_like(m)
    for start in range(0, len(k), columns):
        scores = q @ k[start : start + columns].mT * scale
        if fault in ("last_tile_only", "tiles_averaged"):
            m, total, weighted_before = torch.full_like(m, -INF), 0 * total, weighted
            weighted = 0 * weighted
        new = torch.maximum(m, scores.amax(dim=1, keepdim=True))
        if fault == "largest_not_taken_off":
            new = torch.zeros_like(m)
        factor = torch.ones_like(m) if fault == "largest_not_taken_off" else (m - new).exp()
        weights = (scores - new).exp()
        old_total = total
        total = total * (1 if fault in ("total_not_rescaled", "nothing_rescaled") else factor)
        total = total + weights.sum(dim=1, keepdim=True)
        still = fault in ("output_not_rescaled", "nothing_rescaled")
        weighted = weighted * (1 if still else factor) + weights @ v[start : start + columns]
        if fault == "divided_in_the_loop":
            weighted = weighted / total
        if fault == "shares_of_each_tile":
            own = weights.sum(dim=1, keepdim=True)
            weighted = weighted - weights @ v[start : start + columns] * (1 - 1 / own)
            total = old_total * factor + 1
        if fault == "tiles_averaged":
            weighted = weighted_before + weighted / total
        m = new
    lse = (m + total.log()).squeeze(1)
    if fault == "tiles_averaged":
        return weighted / -(-len(k) // columns), lse
    if fault == "lse_without_largest":
        lse = total.log().squeeze(1)
    if fault == "lse_without_logarithm":
        lse = (m + total).squeeze(1)
    if fault == "total_for_lse":
        lse = total.squeeze(1)
    if fault == "divided_in_the_loop":
        return weighted, lse
    return weighted / total, lse


FORWARD = {
    fault: partial(_forward, fault=fault)
    for fault in (
        "output_not_rescaled",
        "total_not_rescaled",
        "nothing_rescaled",
        "divided_in_the_loop",
        "tiles_averaged",
        "last_tile_only",
        "largest_from_zero",
        "largest_not_taken_off",
        "lse_without_largest",
        "lse_without_logarithm",
        "total_for_lse",
        "unscaled",
        "divided_by_d_head",
    )
}


def from_memory(answer: Callable) -> Callable:
    """How a check calls `attend_ragged`: the first s rows of k and v count."""

    def answered(q: Matrix, k: Matrix, v: Matrix, s: int, width: int) -> Matrix:
        def load(start: int) -> tuple[Matrix, Matrix]:
            if not 0 <= start < s or start % width:
                raise IndexError(f"load({start}): no tile of {width} begins there, with {s} keys")
            return k[start : start + width].clone(), v[start : start + width].clone()

        return answer(q, load, s, width)

    return answered


def _ragged(q: Matrix, load: Load, s: int, width: int, *, fault: str) -> Matrix:
    m, total, weighted = q.new_full((len(q), 1), -INF), q.new_zeros(len(q), 1), 0.0
    end = s // width * width if fault == "tail_dropped" else s
    for start in range(0, end, width):
        k, v = load(start)
        shift = {"one_key_too_many": 1, "last_key_dropped": -1}.get(fault, 0)
        real = torch.arange(start, start + width) < s + shift
        if fault == "full_tile_hidden" and start + width >= s:
            real = torch.arange(width) < s % width
        if fault == "tail_ignored":
            real = torch.ones(width, dtype=torch.bool)
        scores = q @ k.mT * q.shape[1] ** -0.5
        if fault == "tail_gets_zero":
            scores = scores.masked_fill(~real, 0.0)
        elif fault != "masked_after_exponential":
            scores = scores.masked_fill(~real, -INF)
        new = torch.maximum(m, scores.amax(dim=1, keepdim=True))
        weights = (scores - new).exp()
        if fault == "masked_after_exponential":
            weights = weights.masked_fill(~real, 0.0)
        if fault not in ("tail_values_kept", "tail_ignored"):
            v = v.masked_fill(~real[:, None], 0.0)
        factor = (m - new).exp()
        total = total * factor + weights.sum(dim=1, keepdim=True)
        weighted, m = weighted * factor + weights @ v, new
    return weighted / total


RAGGED = {
    fault: from_memory(partial(_ragged, fault=fault))
    for fault in (
        "tail_ignored",
        "tail_gets_zero",
        "tail_dropped",
        "tail_values_kept",
        "masked_after_exponential",
        "one_key_too_many",
        "last_key_dropped",
        "full_tile_hidden",
    )
}


def from_tiles(answer: Callable) -> Callable:
    """How a check calls `flash_causal`: the output, and the tiles of scores that were asked for."""

    def answered(
        q: Matrix, k: Matrix, v: Matrix, rows: int, columns: int
    ) -> tuple[Matrix, list[tuple[int, int]]]:
        asked = []

        def score(i: int, j: int) -> Scores:
            if not (0 <= i < len(q) and 0 <= j < len(k)) or i % rows or j % columns:
                raise IndexError(f"score({i}, {j}): no tile of {rows} by {columns} begins there")
            asked.append((i, j))
            return q[i : i + rows] @ k[j : j + columns].mT / q.shape[1] ** 0.5

        def value(j: int) -> Matrix:
            if not 0 <= j < len(k) or j % columns:
                raise IndexError(f"value({j}): no tile of {columns} keys begins there")
            return v[j : j + columns].clone()

        return answer(score, value, len(q), len(k), rows, columns), asked

    return answered


def causal_output(answer: Callable) -> Callable:
    """The output alone."""
    return lambda *case: from_tiles(answer)(*case)[0]


def causal_tiles(answer: Callable) -> Callable:
    """Tiles of scores that were asked for, showed nothing, or came again; rows that are wrong."""

    def counted(q: Matrix, k: Matrix, v: Matrix, rows: int, columns: int) -> dict[str, int]:
        out, asked = from_tiles(answer)(q, k, v, rows, columns)
        shift = len(k) - len(q)
        seen = torch.arange(len(k)) <= torch.arange(len(q))[:, None] + shift
        scores = (q.double() @ k.double().mT / q.shape[1] ** 0.5).masked_fill(~seen, -INF)
        want = scores.softmax(dim=1).nan_to_num(0.0) @ v.double()
        if not isinstance(out, Tensor) or out.shape != want.shape:
            return out  # the check says what is wrong with it
        right = torch.isclose(out.double(), want, atol=1e-4, rtol=1e-3).all(dim=1)
        in_vain = [(i, j) for i, j in asked if j > min(i + rows, len(q)) - 1 + shift]
        return {
            "wrong rows": int((~right).sum()),
            "tiles": len(asked),
            "in vain": len(in_vain),
            "again": len(asked) - len({*asked}),
        }

    return counted


def _causal(
    score: Callable[[int, int], Scores],
    value: Callable[[int], Matrix],
    t: int,
    s: int,
    rows: int,
    columns: int,
    *,
    fault: str,
) -> Matrix:
    width = value(0).shape[1]
    shift = 0 if fault == "top_left" else s - t
    finished = []
    for i in range(0, t, rows):
        last = min(i + rows, t) - 1
        seen_by_last = last + shift
        if fault == "first_query_decides":
            seen_by_last = i + shift
        n = min(rows, t - i)
        m, total = torch.full((n, 1), -INF), torch.zeros(n, 1)
        weighted = torch.zeros(n, width)
        for j in range(0, s, columns):
            whole = min(j + columns, s) - 1 <= i + shift
            if j > seen_by_last and fault != "every_tile":
                break
            if fault == "edge_tiles_skipped" and not whole:
                continue
            scores = score(i, j)
            where = torch.arange(i, i + n)[:, None] + shift - int(fault == "diagonal_hidden")
            if fault != "edge_tiles_unmasked":
                keys = torch.arange(j, j + scores.shape[1])
                scores = scores.masked_fill(keys > where, -INF)
            new = torch.maximum(m, scores.amax(dim=1, keepdim=True))
            safe = new if fault == "empty_row_nan" else new.masked_fill(new == -INF, 0.0)
            factor, weights = (m - safe).exp(), (scores - safe).exp()
            total = total * factor + weights.sum(dim=1, keepdim=True)
            weighted, m = weighted * factor + weights @ value(j), new
        if fault != "empty_row_nan":
            total = total.masked_fill(total == 0, 1.0)
        finished.append(weighted / total)
    return torch.cat(finished)


CAUSAL = {
    fault: causal_output(partial(_causal, fault=fault))
    for fault in (
        "edge_tiles_skipped",
        "edge_tiles_unmasked",
        "first_query_decides",
        "top_left",
        "diagonal_hidden",
        "empty_row_nan",
    )
}
EVERY_TILE = {"every_tile": causal_tiles(partial(_causal, fault="every_tile"))}


def _whole(n: int, part: int) -> int:
    return -(-n // part)


IO = {
    "reads": {
        "keys_read_once": lambda n, d, rows, columns: 3 * n * d,
        "values_not_counted": lambda n, d, rows, columns: n * d + n * d * (n // rows),
        "queries_read_again": lambda n, d, rows, columns: 2 * n * d + n * d * (n // columns),
        "both_read_again": lambda n, d, rows, columns: 3 * n * d * (n // rows),
        "tiles_by_width": lambda n, d, rows, columns: n * d + 2 * n * d * (n // columns),
        "own_queries_not_counted": lambda n, d, rows, columns: 2 * n * d * (n // rows),
    },
    "writes": {
        "lse_not_counted": lambda n, d, rows, columns: n * d,
        "scores_written": lambda n, d, rows, columns: n * d + n + n * n,
        "written_for_each_tile": lambda n, d, rows, columns: (n * d + n) * (n // columns),
    },
    "flops": {
        "half_the_flops": lambda n, d, rows, columns: 2 * n * n * d,
        "work_divided": lambda n, d, rows, columns: 4 * n * n * d // rows,
    },
    "whole_table": {
        "table_written_once": lambda n, d, rows, columns: 4 * n * d + n * n,
        "table_twice": lambda n, d, rows, columns: 4 * n * d + 2 * n * n,
        "table_three_times": lambda n, d, rows, columns: 4 * n * d + 3 * n * n,
        "table_only": lambda n, d, rows, columns: 4 * n * n,
    },
    "causal_tiles": {
        "half_of_all": lambda n, d, rows, columns: (n // rows) ** 2 // 2,
        "every_tile": lambda n, d, rows, columns: (n // rows) ** 2,
        "edge_tiles_not_counted": lambda n, d, rows, columns: (n // rows) * (n // rows - 1) // 2,
    },
}


def _kernel(
    q: Matrix, k: Matrix, v: Matrix, t: int, s: int, d: int, m: int, n: int, *, fault: str
) -> Matrix:
    """What a whole launch leaves in a buffer like q that held -7 before."""
    o = torch.full_like(q, -7.0)
    q, k, v = q[:t, :d], k[:s, :d], v[:s, :d]
    tail = _whole(s, n) * n - s
    if fault == "tail_gets_zero":
        k, v = (torch.cat([x, x.new_zeros(tail, d)]) for x in (k, v))
    if fault == "tail_dropped":
        k, v = k[: s // n * n], v[: s // n * n]
    scale = {"unscaled": 1.0, "divided_by_d_head": 1 / d}.get(fault, d**-0.5)
    scores = q @ k.mT * scale
    if fault in ("output_not_rescaled", "nothing_rescaled"):
        o[:t, :d], _ = _forward(q, k, v, m, n, fault=fault)
    elif fault == "sums_not_divided":
        o[:t, :d] = (scores - scores.amax(dim=1, keepdim=True)).exp() @ v
    else:
        o[:t, :d] = scores.softmax(dim=-1) @ v
    if fault == "program_number_forgotten":
        o[m:] = -7.0
    if fault == "stored_past_the_end":
        o[t : _whole(t, m) * m, :d] = v.mean(dim=0)
    return o


KERNEL = {
    fault: partial(_kernel, fault=fault)
    for fault in (
        "tail_gets_zero",
        "tail_dropped",
        "unscaled",
        "divided_by_d_head",
        "output_not_rescaled",
        "nothing_rescaled",
        "sums_not_divided",
        "program_number_forgotten",
        "stored_past_the_end",
    )
}


def _draft(q: Matrix, k: Matrix, v: Matrix, width: int, *, left: tuple[str, ...]) -> Matrix:
    """The draft with the faults that are left in it."""
    start_at = 0.0 if "largest_from_zero" in left else -INF
    largest = q.new_full((len(q), 1), start_at)
    total, weighted = q.new_zeros(len(q), 1), q.new_zeros(len(q), v.shape[1])
    end = len(k) - width + 1 if "tail_dropped" in left else len(k)
    for start in range(0, end, width):
        scores = q @ k[start : start + width].mT * q.shape[1] ** -0.5
        new = torch.maximum(largest, scores.amax(dim=1, keepdim=True))
        factor = 1.0 if "nothing_rescaled" in left else (largest - new).exp()
        weights = (scores - new).exp()
        total = total * factor + weights.sum(dim=1, keepdim=True)
        weighted, largest = weighted * factor + weights @ v[start : start + width], new
    return weighted / total


FAULTS = ("largest_from_zero", "tail_dropped", "nothing_rescaled")
TILES_BUG = {fault: partial(_draft, left=(fault,)) for fault in FAULTS} | {
    "draft_unchanged": partial(_draft, left=FAULTS)
}
