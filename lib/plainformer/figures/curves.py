"""Measurements as lines."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from plainformer.figures.palette import LINES, MARKERS


def curve_with_band(
    x: Sequence[int | float],
    runs: Float[Tensor, "n_runs n_points"],
    label: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean of several runs as a line, in a band from the lowest run to the highest.

    Each further call on the same axes takes the next colour and marker.
    """
    if len(x) != runs.shape[1]:
        raise ValueError(
            f"x has {len(x)} points but the runs have {runs.shape[1]}; "
            f"runs is one row per run, one column per point"
        )
    ax = ax or plt.subplots(figsize=(6, 3.5), layout="constrained")[1]
    turn = len(ax.lines) % len(LINES)
    points = runs.detach().cpu().numpy()
    ax.fill_between(x, points.min(axis=0), points.max(axis=0), color=LINES[turn], alpha=0.2, lw=0)
    ax.plot(x, points.mean(axis=0), color=LINES[turn], marker=MARKERS[turn], label=label)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax
