"""Masks as grids: who may look at whom."""

import matplotlib.pyplot as plt
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from plainformer.figures.palette import GRID, INK, LINES, PAPER


def mask_grid(
    mask: Bool[Tensor, "t s"],
    queries: list[str],
    keys: list[str],
    ax: Axes | None = None,
) -> Axes:
    """Draw who may look at whom: a filled cell with a dot is open, a hatched one is closed."""
    if mask.shape != (len(queries), len(keys)):
        got = f"{len(queries)} queries and {len(keys)} keys"
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}, but the labels name {got}; "
            f"rows are queries, columns are keys"
        )
    size = (0.4 * len(keys) + 1.6, 0.4 * len(queries) + 1.4)
    ax = ax or plt.subplots(figsize=size, layout="constrained")[1]
    for i, row in enumerate(mask.tolist()):
        for j, is_open in enumerate(row):
            looks = {"facecolor": LINES[0]} if is_open else {"facecolor": PAPER, "hatch": "////"}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, edgecolor=GRID, lw=0.8, **looks))
            if is_open:
                ax.plot(j, i, "o", color=PAPER, markersize=5)
    ax.add_patch(Rectangle((-0.5, -0.5), len(keys), len(queries), fill=False, edgecolor=INK, lw=1))
    ax.set(xlim=(-0.6, len(keys) - 0.4), ylim=(len(queries) - 0.4, -0.6), aspect="equal")
    ax.set_xticks(range(len(keys)), keys, rotation=90)
    ax.set_yticks(range(len(queries)), queries)
    ax.set(xlabel="key (looked at)", ylabel="query (looking)")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax
