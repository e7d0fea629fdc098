"""The mistakes that the checks of chapter 00 know by name: one table an exercise.

Each entry is a wrong function with the exercise's arguments; its text stands under the same key in
`plainformer.messages.MISTAKES`.
"""

from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

INF = float("inf")


def _shapes(sizes: tuple[int, ...], **wrong: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The prediction of somebody who is wrong about the lines named in `wrong`, and only there."""
    b, t, s, d_model, d_head = sizes
    right = {
        "q": (b, t, d_head),
        "scores": (b, t, s),
        "row_sum": (b, t),
        "column_mean": (b, s),
        "row_max": (b, t, 1),
        "out": (b, t, d_model),
        "first_word": (b, d_model),
        "one_sentence": (t, s),
    }
    return right | wrong


SHAPES = {
    "keepdim_ignored": lambda b, t, *rest: _shapes((b, t, *rest), row_max=(b, t)),
    "named_axis_kept": lambda b, t, s, *rest: _shapes(
        (b, t, s, *rest), row_sum=(b, s), column_mean=(b, t)
    ),
    "reduced_axis_stays": lambda b, t, s, *rest: _shapes(
        (b, t, s, *rest), row_sum=(b, t, 1), column_mean=(b, 1, s)
    ),
    "inner_axis_kept": lambda b, t, s, *rest: _shapes((b, t, s, *rest), out=(b, t, s)),
    "out_as_wide_as_q": lambda b, t, s, d_model, d_head: _shapes(
        (b, t, s, d_model, d_head), out=(b, t, d_head)
    ),
    "index_keeps_axis": lambda b, t, s, d_model, d_head: _shapes(
        (b, t, s, d_model, d_head), first_word=(b, 1, d_model), one_sentence=(1, t, s)
    ),
    "index_takes_first_axis": lambda b, t, s, d_model, d_head: _shapes(
        (b, t, s, d_model, d_head), first_word=(t, d_model)
    ),
    "scores_swapped": lambda b, t, s, *rest: _shapes((b, t, s, *rest), scores=(b, s, t)),
}


BROADCAST = {
    "mean_over_words": lambda x, gain: (x - x.mean(dim=1, keepdim=True)) * gain[:, None],
    "mean_over_sentence": lambda x, gain: (x - x.mean(dim=(1, 2), keepdim=True)) * gain[:, None],
    "mean_over_everything": lambda x, gain: (x - x.mean()) * gain[:, None],
    "keepdim_forgotten": lambda x, gain: (x - x.mean(dim=-1)) * gain[:, None],
    "gain_along_width": lambda x, gain: (x - x.mean(dim=-1, keepdim=True)) * gain,
    "gain_ignored": lambda x, gain: x - x.mean(dim=-1, keepdim=True),
    "not_centred": lambda x, gain: x * gain[:, None],
    "gain_before_mean": lambda x, gain: x * gain[:, None] - x.mean(dim=-1, keepdim=True),
}


def _sizes(rows: Num[Tensor, "n d_model"], b: int) -> tuple[int, int, int]:
    return b, len(rows) // b, rows.shape[1]


def _width_before_words(rows: Num[Tensor, "n d_model"], b: int) -> Num[Tensor, "b t d_model"]:
    b, t, d_model = _sizes(rows, b)
    return rows.reshape(b, d_model, t).mT


TRANSPOSE_OR_VIEW = {
    "view_without_transpose": lambda rows, b: rows.reshape(_sizes(rows, b)),
    "axes_not_swapped": lambda rows, b: rows.reshape(len(rows) // b, b, -1),
    "everything_transposed": lambda rows, b: rows.mT.reshape(_sizes(rows, b)),
    "width_before_words": _width_before_words,
}


def _best(
    scores: Float[Tensor, "t s"], mask: Bool[Tensor, "t s"], fill: float = -INF
) -> Float[Tensor, " t"]:
    best = scores.masked_fill(~mask, fill).amax(dim=-1)
    return best.masked_fill(~mask.any(dim=-1), 0.0)


BOOLEAN_MASK = {
    "zero_takes_part": lambda scores, mask: (scores * mask).amax(dim=-1),
    "mask_inverted": lambda scores, mask: _best(scores, ~mask),
    "mask_ignored": lambda scores, mask: scores.amax(dim=-1),
    "best_of_each_column": lambda scores, mask: _best(scores.mT, mask.mT),
    "one_best_for_all": lambda scores, mask: scores.masked_fill(~mask, -INF).amax(),
    "position_for_value": lambda scores, mask: scores.masked_fill(~mask, -INF).argmax(dim=-1),
    "empty_row_keeps_fill": lambda scores, mask: scores.masked_fill(~mask, -INF).amax(dim=-1),
    "fill_not_low_enough": lambda scores, mask: _best(scores, mask, fill=-1e9),
    "all_for_any": lambda scores, mask: (
        scores.masked_fill(~mask, -INF).amax(dim=-1).masked_fill(~mask.all(dim=-1), 0.0)
    ),
    "clamped_at_zero": lambda scores, mask: (
        scores.masked_fill(~mask, -INF).amax(dim=-1).clamp(min=0.0)
    ),
}
BOOLEAN_MASK_NUMBERS = {"whole_numbers": lambda scores, mask: "integers"}


def _total(
    x: Float[Tensor, "b t d_model"], mask: Bool[Tensor, "b t"]
) -> Float[Tensor, "b d_model"]:
    return x.masked_fill(~mask[..., None], 0.0).sum(dim=1)


def _count(mask: Bool[Tensor, "b t"]) -> Int[Tensor, "b 1"]:
    return mask.sum(dim=1, keepdim=True)


READ_A_MESSAGE = {
    "padding_averaged": lambda x, mask: x.mean(dim=1),
    "divided_by_all_words": lambda x, mask: _total(x, mask) / x.shape[1],
    "divided_by_batch_count": lambda x, mask: _total(x, mask) / mask.sum().clamp(min=1),
    "padding_meant": lambda x, mask: _total(x, ~mask) / _count(~mask).clamp(min=1),
    "not_divided": lambda x, mask: _total(x, mask),
    "empty_divides_by_zero": lambda x, mask: _total(x, mask) / _count(mask),
    "padding_multiplied": lambda x, mask: (
        (x * mask[..., None]).sum(dim=1) / _count(mask).clamp(min=1)
    ),
    "one_added_to_count": lambda x, mask: _total(x, mask) / (_count(mask) + 1),
    "little_added_to_count": lambda x, mask: _total(x, mask) / (_count(mask) + 1e-4),
    "zeros_not_counted": lambda x, mask: (
        _total(x, mask) / _count(mask & x.ne(0).any(dim=-1)).clamp(min=1)
    ),
}


READ_ALOUD = {"divided_by_rows": lambda scores: scores.sum(dim=-1) / len(scores)}
