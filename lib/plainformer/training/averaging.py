"""One model out of several moments of its training."""

from collections.abc import Sequence

import torch
from jaxtyping import Shaped
from torch import Tensor

State = dict[str, Shaped[Tensor, "..."]]


def averaged(states: Sequence[State]) -> State:
    """The mean of several `state_dict()`s of one model, weight by weight.

    Near the end of training the weights jump about a good place, by more than they approach it;
    the mean of several jumps lies closer. Copy each state when it is taken, for a `state_dict`
    shows the weights of now: `copy.deepcopy(model.state_dict())`. Numbers that are not fractions,
    such as counters, are those of the last state.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sec. 6.1, who average the last 5 or 20.
    Raises ValueError when there is no state, or the states name different weights.
    """
    if not states or any(set(state) != set(states[0]) for state in states):
        raise ValueError(
            f"states must be at least one, and all of one model, got {len(states)} with "
            f"{[len(state) for state in states]} entries; collect them from one training"
        )
    return {
        name: torch.stack([state[name] for state in states]).mean(dim=0)
        if last.is_floating_point()
        else last.clone()
        for name, last in states[-1].items()
    }
