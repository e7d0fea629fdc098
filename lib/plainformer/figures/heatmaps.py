"""Attention as a grid: who looks at whom."""

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from plainformer.figures.palette import GRID, INK, PAPER


def attention_map(
    weights: Float[Tensor, "t s"],
    queries: list[str],
    keys: list[str],
    ax: Axes | None = None,
    *,
    numbers: bool = False,
) -> Axes:
    """Draw who looks at whom: one row per query, one column per key, darker is more weight.

    `numbers` writes each weight into its cell: for maps small enough to be read like a table.
    """
    if weights.shape != (len(queries), len(keys)):
        got = f"{len(queries)} queries and {len(keys)} keys"
        raise ValueError(
            f"weights has shape {tuple(weights.shape)}, but the labels name {got}; "
            f"rows are queries, columns are keys"
        )
    cell = 0.6 if numbers else 0.4  # inches
    size = (cell * len(keys) + 1.6, cell * len(queries) + 1.4)
    ax = ax or plt.subplots(figsize=size, layout="constrained")[1]
    grid = weights.detach().cpu().float().numpy()
    ax.imshow(grid, cmap="Blues", vmin=0, vmax=1)  # fixed: maps stay comparable
    ax.set_xticks(range(len(keys)), keys, rotation=90)
    ax.set_yticks(range(len(queries)), queries)
    ax.set(xlabel="key (looked at)", ylabel="query (looking)")
    # Hairlines between the cells lead the eye from a faint one to its labels.
    ax.set_xticks([j + 0.5 for j in range(len(keys) - 1)], minor=True)
    ax.set_yticks([i + 0.5 for i in range(len(queries) - 1)], minor=True)
    ax.grid(which="minor", color=GRID, linewidth=0.5)
    ax.tick_params(which="both", length=0)
    if numbers:
        for i, row in enumerate(grid.tolist()):
            for j, weight in enumerate(row):
                colour = PAPER if weight > 0.715 else INK  # whichever contrasts more
                ax.text(j, i, f"{weight:.2f}", ha="center", va="center", color=colour)
    return ax
