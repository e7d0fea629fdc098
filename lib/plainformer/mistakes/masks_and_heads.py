"""Wrong answers to the exercises of chapter 03, so that a check can name what it sees.

One dictionary an exercise: a key of `plainformer.messages.MISTAKES`, and the function that somebody
with this mistake would have written. No entry is right; all look reasonable.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Mask = Bool[Tensor, "..."]
Scores = Float[Tensor, "*batch t s"]
Tokens = Float[Tensor, "b t d_model"]
Heads = Float[Tensor, "b h t d_head"]
Weight = Float[Tensor, "d_in d_out"]
Attend = Callable[[Tensor], Tensor]
INF = float("inf")


def _open(t: int, s: int, diagonal: int) -> Bool[Tensor, "t s"]:
    return torch.ones(t, s, dtype=torch.bool).tril(diagonal)


CAUSAL = {
    "diagonal_hidden": lambda t, s: _open(t, s, s - t - 1),
    "one_ahead": lambda t, s: _open(t, s, s - t + 1),
    "top_left": lambda t, s: _open(t, s, 0),
    "offset_negated": lambda t, s: _open(t, s, t - s),
    "mask_inverted": lambda t, s: ~_open(t, s, s - t),
    "looks_forward": lambda t, s: torch.ones(t, s, dtype=torch.bool).triu(s - t),
    "past_only_one": lambda t, s: torch.eye(s, dtype=torch.bool)[s - t :],
}


def _real(lengths: Int[Tensor, " b"], s: int, shift: int = 0) -> Bool[Tensor, "b 1 s"]:
    return torch.arange(s) < lengths[:, None, None] + shift


PADDING = {
    "mask_inverted": lambda lengths, s: ~_real(lengths, s),
    "one_too_many": lambda lengths, s: _real(lengths, s, 1),
    "one_too_few": lambda lengths, s: _real(lengths, s, -1),
    "padded_on_the_left": lambda lengths, s: _real(lengths, s).flip(-1),
    "queries_hidden": lambda lengths, s: _real(lengths, s).mT,
    "query_axis_missing": lambda lengths, s: _real(lengths, s)[:, 0],
    "both_sides_hidden": lambda lengths, s: _real(lengths, s) & _real(lengths, s).mT,
    "never_empty": lambda lengths, s: _real(lengths.clamp(min=1), s),
}


def _filled(scores: Scores, mask: Mask, fill: float) -> Scores:
    return scores.masked_fill(~mask, fill).softmax(dim=-1)


def _renormalised(scores: Scores, mask: Mask) -> Scores:
    weights = scores.softmax(dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True)


def _empty_rows(scores: Scores, mask: Mask) -> Mask:
    return ~mask.any(dim=-1, keepdim=True)


MASKED_SOFTMAX = {
    "masked_after": lambda scores, mask: scores.softmax(dim=-1) * mask,
    "renormalised_late": _renormalised,
    "scores_times_mask": lambda scores, mask: (scores * mask).softmax(dim=-1),
    "empty_row_nan": lambda scores, mask: _filled(scores, mask, -INF),
    "empty_row_uniform": lambda scores, mask: _filled(scores, mask, torch.finfo(scores.dtype).min),
    "fill_not_low_enough": lambda scores, mask: _filled(scores, mask, -1e9) * mask,
    "fill_kept": lambda scores, mask: _filled(scores, mask, -1e9),
    "fill_far_too_high": lambda scores, mask: _filled(scores, mask, -100.0) * mask,
    "mask_inverted": lambda scores, mask: _filled(scores, ~mask, -INF).nan_to_num(),
    "mask_ignored": lambda scores, mask: scores.softmax(dim=-1),
    "softmax_down_columns": lambda scores, mask: (
        scores.masked_fill(~mask, -INF).softmax(dim=-2).nan_to_num()
    ),
}


def _split(x: Tokens, n_heads: int) -> Heads:
    b, t, d_model = x.shape
    return x.reshape(b, t, n_heads, d_model // n_heads).transpose(1, 2)


def _split_by_view(x: Tokens, n_heads: int) -> Heads:
    b, t, d_model = x.shape
    return x.reshape(b, n_heads, t, d_model // n_heads)


def _split_interleaved(x: Tokens, n_heads: int) -> Heads:
    b, t, d_model = x.shape
    return x.reshape(b, t, d_model // n_heads, n_heads).permute(0, 3, 1, 2)


SPLIT = {
    "heads_by_view": _split_by_view,
    "heads_interleaved": _split_interleaved,
    "heads_not_in_front": lambda x, n_heads: _split(x, n_heads).transpose(1, 2),
    "heads_transposed": lambda x, n_heads: _split(x, n_heads).mT,
}


def _merge(heads: Heads) -> Tokens:
    return heads.transpose(1, 2).flatten(2)


def _merge_by_view(heads: Heads) -> Tokens:
    b, h, t, d_head = heads.shape
    return heads.reshape(b, t, h * d_head)


MERGE = {
    "merged_by_view": _merge_by_view,
    "merged_interleaved": lambda heads: heads.permute(0, 2, 3, 1).flatten(2),
    "heads_added": lambda heads: heads.sum(dim=1),
}


def _multi_head(
    x: Tokens,
    w_q: Weight,
    w_k: Weight,
    w_v: Weight,
    w_o: Weight,
    n_heads: int,
    mask: Mask | None = None,
    *,
    split: Callable = _split,
    merge: Callable = _merge,
    width: int | None = None,
    fill: float | None = None,
    cut: bool = False,
) -> Tokens:
    """What is right, but for the one thing that a caller changes."""
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    scores = q @ k.mT / (width or q.shape[-1]) ** 0.5
    if mask is None:
        weights = scores.softmax(dim=-1)
    elif cut:
        weights = scores.softmax(dim=-1) * mask
    elif fill is None:
        weights = _filled(scores, mask, -INF).nan_to_num()
    else:
        weights = _filled(scores, mask, fill)
    return merge(weights @ v) @ w_o


def _by_view(*args) -> Tokens:
    return _multi_head(*args, split=_split_by_view, merge=_merge_by_view)


def _interleaved(*args) -> Tokens:
    return _multi_head(*args, split=_split_interleaved, merge=MERGE["merged_interleaved"])


def _without_out(x, w_q, w_k, w_v, w_o, n_heads, mask=None) -> Tokens:
    return _multi_head(x, w_q, w_k, w_v, torch.eye(len(w_o)), n_heads, mask)


def _mask_inverted(x, w_q, w_k, w_v, w_o, n_heads, mask=None) -> Tokens:
    return _multi_head(x, w_q, w_k, w_v, w_o, n_heads, None if mask is None else ~mask)


MULTI_HEAD = {
    "heads_by_view": _by_view,
    "split_by_view_only": lambda *args: _multi_head(*args, split=_split_by_view),
    "merged_by_view": lambda *args: _multi_head(*args, merge=_merge_by_view),
    "heads_interleaved": _interleaved,
    "scaled_by_root_d_model": lambda *args: _multi_head(*args, width=args[0].shape[-1]),
    "unscaled": lambda *args: _multi_head(*args, width=1),
    "out_forgotten": _without_out,
    "one_head_only": lambda x, w_q, w_k, w_v, w_o, n_heads, mask=None: _multi_head(
        x, w_q, w_k, w_v, w_o, 1, mask
    ),
    "mask_ignored": lambda *args: _multi_head(*args[:6]),
    "mask_inverted": _mask_inverted,
    "empty_row_nan": lambda *args: _multi_head(*args, fill=-INF),
    "keys_and_values_swapped": lambda x, w_q, w_k, w_v, w_o, n_heads, mask=None: _multi_head(
        x, w_q, w_v, w_k, w_o, n_heads, mask
    ),
    "queries_and_keys_swapped": lambda x, w_q, w_k, w_v, w_o, n_heads, mask=None: _multi_head(
        x, w_k, w_q, w_v, w_o, n_heads, mask
    ),
    "masked_after": lambda *args: _multi_head(*args, cut=True),
    "projections_transposed": lambda x, w_q, w_k, w_v, w_o, n_heads, mask=None: _multi_head(
        x, w_q.T, w_k.T, w_v.T, w_o.T, n_heads, mask
    ),
}


BY_VIEW = {"split": _split_by_view, "merge": _merge_by_view}


def _masked_heads(
    x, w_q, w_k, w_v, w_o, n_heads, *, by_view=(), root_of_d_model=False, ahead=0
) -> Tokens:
    """The draft of the exercise, with the faults that are switched on."""
    t, d_model = x.shape[1:]
    ways = {way: BY_VIEW[way] for way in by_view}
    width = d_model if root_of_d_model else None
    return _multi_head(x, w_q, w_k, w_v, w_o, n_heads, _open(t, t, ahead), width=width, **ways)


HEADS_BUG = {
    "draft_unchanged": lambda *args: _masked_heads(
        *args, by_view=BY_VIEW, root_of_d_model=True, ahead=1
    ),
    "heads_by_view": lambda *args: _masked_heads(*args, by_view=BY_VIEW),
    "split_by_view_only": lambda *args: _masked_heads(*args, by_view=["split"]),
    "merged_by_view": lambda *args: _masked_heads(*args, by_view=["merge"]),
    "scaled_by_root_d_model": lambda *args: _masked_heads(*args, root_of_d_model=True),
    "one_ahead": lambda *args: _masked_heads(*args, ahead=1),
    "diagonal_hidden": lambda *args: _masked_heads(*args, ahead=-1),
    "view_and_scale": lambda *args: _masked_heads(*args, by_view=BY_VIEW, root_of_d_model=True),
    "view_and_mask": lambda *args: _masked_heads(*args, by_view=BY_VIEW, ahead=1),
    "scale_and_mask": lambda *args: _masked_heads(*args, root_of_d_model=True, ahead=1),
}


def _cost(b: int, t: int, s: int, d_model: int, n_heads: int, **wrong: int) -> dict[str, int]:
    right = {
        "parameters": 4 * d_model**2,
        "projection_flops": 4 * b * (t + s) * d_model**2,
        "score_flops": 2 * b * t * s * d_model,
        "mixing_flops": 2 * b * t * s * d_model,
        "weight_numbers": b * n_heads * t * s,
    }
    return right | wrong


def _times(factor: float, *keys: str, of: dict[str, int]) -> dict[str, int]:
    return {key: int(factor * number) if key in keys else number for key, number in of.items()}


FLOPS = ("projection_flops", "score_flops", "mixing_flops")
COST = {
    "heads_multiply_work": lambda *a: _times(a[4], *FLOPS[1:], of=_cost(*a)),
    "heads_divide_work": lambda *a: _times(1 / a[4], *FLOPS[1:], of=_cost(*a)),
    "one_flop_each": lambda *a: _times(0.5, *FLOPS, of=_cost(*a)),
    "memory_length_ignored": lambda b, t, s, d, h: _cost(
        b, t, s, d, h, projection_flops=8 * b * t * d * d
    ),
    "out_projection_forgotten": lambda b, t, s, d, h: _cost(
        b, t, s, d, h, parameters=3 * d * d, projection_flops=2 * b * (t + 2 * s) * d * d
    ),
    "heads_multiply_parameters": lambda *a: _times(a[4], "parameters", of=_cost(*a)),
    "one_table_for_all_heads": lambda *a: _times(1 / a[4], "weight_numbers", of=_cost(*a)),
    "batch_forgotten": lambda b, t, s, d, h: _cost(1, t, s, d, h),
    "biases_counted": lambda b, t, s, d, h: _cost(b, t, s, d, h, parameters=4 * d * d + 4 * d),
}


def _moved(attend: Attend, x: Tokens, first: int, last: int | None = None) -> Tokens:
    """How far each output moves when the tokens from `first` on are changed."""
    changed = x.clone()
    changed[:, first:last] = 3.0 - 2.0 * x[:, first:last].flip(-1)
    return (attend(changed) - attend(x)).abs().amax(dim=-1)


def _looks_ahead(
    attend: Attend,
    x: Tokens,
    tolerance: float = 1e-5,
    keep: int = 0,
    sequences: int | None = None,
    cuts: slice = slice(None),
) -> bool:
    return any(
        (_moved(attend, x, i)[:sequences, : i + keep] > tolerance).any().item()
        for i in range(1, x.shape[1])[cuts]
    )


LOOKS_AHEAD = {
    "only_last_changed": lambda attend, x: (
        (_moved(attend, x, x.shape[1] - 1)[:, :-1] > 1e-5).any().item()
    ),
    "only_first_watched": lambda attend, x: (_moved(attend, x, 1)[:, 0] > 1e-5).any().item(),
    "own_token_changed": lambda attend, x: _looks_ahead(attend, x, keep=1),
    "rounding_counts": lambda attend, x: _looks_ahead(attend, x, tolerance=0.0),
    "first_sentence_only": lambda attend, x: _looks_ahead(attend, x, sequences=1),
    "small_leaks_pass": lambda attend, x: _looks_ahead(attend, x, tolerance=0.1),
    "last_cut_missing": lambda attend, x: _looks_ahead(attend, x, cuts=slice(None, -1)),
    "first_cut_missing": lambda attend, x: _looks_ahead(attend, x, cuts=slice(1, None)),
    "text_cut_off": lambda attend, x: any(
        ((attend(x[:, :i]) - attend(x)[:, :i]).abs() > 1e-5).any().item()
        for i in range(1, x.shape[1])
    ),
    "verdict_inverted": lambda attend, x: not _looks_ahead(attend, x),
    "next_token_only": lambda attend, x: any(
        (_moved(attend, x, i, i + 1)[:, i - 1] > 1e-5).any().item() for i in range(1, x.shape[1])
    ),
}


def _kept(scores: Float[Tensor, "t s"], which: slice, power: float = 1.0) -> Float[Tensor, "t s"]:
    u, values, vh = torch.linalg.svd(scores, full_matrices=False)
    return (u[:, which] * values[which] ** power) @ vh[which]


def _corner(scores: Float[Tensor, "t s"], d_head: int) -> Float[Tensor, "t s"]:
    kept = scores.clone()
    kept[:, d_head:] = 0.0
    return kept


# Of this exercise the check compares the scores that q and k make.
SCORE_RANK = {
    "root_forgotten": lambda scores, d: _kept(scores, slice(d)) / d**0.5,
    "root_the_wrong_way": lambda scores, d: _kept(scores, slice(d)) / d,
    "smallest_kept": lambda scores, d: _kept(scores, slice(-d, None)),
    "singular_values_twice": lambda scores, d: _kept(scores, slice(d), 2.0),
    "singular_values_forgotten": lambda scores, d: _kept(scores, slice(d), 0.0),
    "first_columns_kept": _corner,
}
