"""Always take the likeliest symbol."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from plainformer.contracts import require_sizes

NextLogits = Callable[[Int[Tensor, "b t"]], Float[Tensor, "b vocab"]]


@torch.no_grad()
def greedy(
    next_logits: NextLogits, *, b: int, start_id: int, end_id: int, max_length: int
) -> Int[Tensor, "b t"]:
    """Write `b` texts, symbol by symbol; of equally likely ones the smallest id is taken.

    `next_logits(written)` gives the logits of what follows texts that begin with `start_id`, such
    as `Transformer.continuation`. What is returned leaves the start out. Behind the first `end_id`
    of a text stands nothing but `end_id`; the search ends when all texts have one, or have
    `max_length` symbols, the end counted.
    Raises ValueError when `b` or `max_length` is below 1.
    """
    require_sizes(b=b, max_length=max_length)
    written = torch.full((b, 1), start_id)
    done = torch.zeros(b, dtype=torch.bool)
    for _ in range(max_length):
        best = next_logits(written).argmax(dim=-1).cpu()
        best = best.masked_fill(done, end_id)
        written = torch.cat([written, best[:, None]], dim=1)
        done |= best == end_id
        if done.all():
            break
    return written[:, 1:]
