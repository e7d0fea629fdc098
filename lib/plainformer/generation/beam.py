"""Keep several texts alive at once, for a likely text may begin with an unlikely symbol."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from plainformer.contracts import require_sizes


class Hypothesis(NamedTuple):
    """A text that was found."""

    ids: list[int]  # without the start, with the end where there is one
    log_probability: float  # of all its symbols, the end counted; in nats
    score: float  # what texts of different lengths are compared by
    finished: bool  # ends with the end symbol


@torch.no_grad()
def beam_search(
    next_logits: Callable[[Int[Tensor, "n t"]], Float[Tensor, "n vocab"]],
    *,
    start_id: int,
    end_id: int,
    max_length: int,
    beam_width: int,
    alpha: float = 0.0,
) -> list[Hypothesis]:
    r"""Search the text with the highest score; return all that were finished, the best first.

    $$ \mathrm{score}(y) = \frac{\sum_i \ln p(y_i \mid y_{<i})}{|y|^\alpha} $$

    There are several conventions, and they find different texts. Ours, in full: |y| counts the
    symbols of y, the end too, the start not. At every step all continuations of the `beam_width`
    living texts are ranked by log-probability, not by score: all have one length. Those that end
    and are among the best `beam_width` are finished and leave; the best `beam_width` that do not
    end live on, so the beam does not shrink. Ties go to the text that ranked higher before, then to
    the smaller id. The search stops after `max_length` symbols, where what has not ended is dropped
    at all; or earlier, as soon as no living text can win any more: its log-probability can only
    fall and its length not pass `max_length`, so its score stays below
    log-probability / `max_length` ** alpha. If nothing was finished, the likeliest living text is
    all that is returned, with `finished=False`.
    `beam_width=1, alpha=0` is greedy search. `alpha` 0 prefers short texts, 1 compares averages.
    Source: Sutskever et al. 2014 (arXiv:1409.3215), sec. 3.2, whose beam shrinks and whose score
    has no length; the power of the length is Wu et al. 2016 (arXiv:1609.08144), eq. 14, where it is
    ((5 + |y|) / 6) ** alpha.
    Raises ValueError when `beam_width` or `max_length` is below 1, or `alpha` below 0.
    """
    require_sizes(beam_width=beam_width, max_length=max_length)
    if not alpha >= 0:
        raise ValueError(
            f"alpha must be at least 0, got {alpha}; 0 compares sums, 1 averages, and 0.6 is usual"
        )
    finished: list[Hypothesis] = []
    written, sums = torch.tensor([[start_id]]), torch.zeros(1, dtype=torch.float64)
    for length in range(1, max_length + 1):
        log_p = next_logits(written).cpu().double().log_softmax(dim=-1)
        totals = sums[:, None] + log_p  # (living, vocab)
        # One symbol ends, so among twice as many at least `beam_width` do not.
        candidates = _ranked(totals, 2 * beam_width)
        for row, symbol in candidates[:beam_width]:
            if symbol == end_id:
                total = totals[row, symbol].item()
                ids = [*written[row, 1:].tolist(), end_id]
                finished.append(Hypothesis(ids, total, total / length**alpha, True))
        living = [found for found in candidates if found[1] != end_id][:beam_width]
        if not living:
            break  # nothing but the end had a chance
        rows, symbols = torch.tensor(living).unbind(dim=1)
        sums = totals[rows, symbols]
        written = torch.cat([written[rows], symbols[:, None]], dim=1)
        best = max((found.score for found in finished), default=-torch.inf)
        if best >= sums[0].item() / max_length**alpha:
            break
    if not finished:
        total = sums[0].item()
        ids = written[0, 1:].tolist()
        return [Hypothesis(ids, total, total / len(ids) ** alpha, False)]
    return sorted(finished, key=lambda found: -found.score)


def _ranked(totals: Float[Tensor, "n_living vocab"], n: int) -> list[tuple[int, int]]:
    """The likeliest `n` of all (row, symbol), the best first; impossible ones are left out."""
    best, order = totals.flatten().sort(descending=True, stable=True)
    order = order[best > -torch.inf][:n]
    return [divmod(i, totals.shape[1]) for i in order.tolist()]
