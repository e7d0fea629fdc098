import pytest
import torch

from plainformer.figures.curves import curve_with_band
from plainformer.figures.palette import LINES, MARKERS

RUNS = torch.tensor([[1.0, 5.0], [2.0, 3.0], [6.0, 4.0]])


def test_by_hand_the_line_is_the_mean_and_the_band_spans_the_runs():
    ax = curve_with_band([16, 64], RUNS, "unscaled")
    line, band = ax.lines[0], ax.collections[0].get_paths()[0].vertices
    assert line.get_xdata().tolist() == [16, 64]
    assert line.get_ydata().tolist() == [3.0, 4.0]
    assert {tuple(corner) for corner in band} == {(16, 1), (16, 6), (64, 3), (64, 5)}
    assert line.get_label() == ax.get_legend().get_texts()[0].get_text() == "unscaled"


def test_every_further_curve_has_another_colour_and_marker():
    ax = None
    for i in range(len(LINES) + 1):
        ax = curve_with_band([16, 64], RUNS + i, f"curve {i}", ax)
    looks = [(line.get_color(), line.get_marker()) for line in ax.lines]
    assert looks == [*zip(LINES, MARKERS, strict=True), (LINES[0], MARKERS[0])]


def test_points_without_a_place_are_refused():
    with pytest.raises(ValueError, match="x has 3 points but the runs have 2"):
        curve_with_band([16, 64, 256], RUNS, "unscaled")
