import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from plainformer.figures.masks import mask_grid
from plainformer.figures.palette import LINES
from plainformer.masks import causal_mask


def test_open_cells_are_filled_and_dotted_closed_ones_hatched():
    ax = mask_grid(causal_mask(2, 3), ["b", "c"], ["a", "b", "c"])
    cells = [p for p in ax.patches if isinstance(p, Rectangle) and p.get_fill()]
    filled = {
        (cell.get_y() + 0.5, cell.get_x() + 0.5)
        for cell in cells
        if to_hex(cell.get_facecolor()).upper() == LINES[0] and not cell.get_hatch()
    }
    hatched = {(cell.get_y() + 0.5, cell.get_x() + 0.5) for cell in cells if cell.get_hatch()}
    dots = {(line.get_ydata()[0], line.get_xdata()[0]) for line in ax.lines}
    assert filled == dots == {(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)}
    assert hatched == {(0, 2)}


def test_axes_say_who_looks():
    ax = mask_grid(causal_mask(2, 3), ["b", "c"], ["a", "b", "c"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key (looked at)", "query (looking)")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first query on top


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="the labels name 3 queries and 2 keys"):
        mask_grid(torch.ones(2, 3, dtype=torch.bool), ["a", "b", "c"], ["a", "b"])
