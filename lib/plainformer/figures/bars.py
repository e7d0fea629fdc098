"""Distributions as bars."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from plainformer.figures.palette import INK


def softmax_temperature(
    scores: Float[Tensor, " s"],
    keys: list[str],
    temperatures: Sequence[int | float],
    ax: Axes | None = None,
) -> Axes:
    """Draw softmax(scores / temperature), one group of bars per key, one bar per temperature.

    A low temperature gives all weight to the best key; a high one treats all keys alike.
    """
    if len(scores) != len(keys):
        raise ValueError(f"there are {len(scores)} scores but {len(keys)} keys; name every score")
    if min(temperatures) <= 0:
        raise ValueError(f"temperatures must be above 0, got {temperatures}; try [0.5, 1, 2]")
    ax = ax or plt.subplots(figsize=(6, 3), layout="constrained")[1]
    width = 0.8 / len(temperatures)
    blues = plt.get_cmap("Blues")
    for i, temperature in enumerate(temperatures):
        weights = (scores.detach().cpu().float() / temperature).softmax(dim=0).tolist()
        places = [key + (i - (len(temperatures) - 1) / 2) * width for key in range(len(keys))]
        shade = blues(0.9 - 0.75 * i / max(1, len(temperatures) - 1))
        ax.bar(places, weights, width, color=shade, edgecolor=INK, label=f"{temperature:g}")
    ax.set_xticks(range(len(keys)), keys)
    ax.set(xlabel="key", ylabel="weight", ylim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(title="temperature", frameon=False)
    return ax
