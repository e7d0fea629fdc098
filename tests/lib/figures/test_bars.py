from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.figures.bars import softmax_temperature

SCORES = torch.tensor([2.0, 0.0])


def heights(bars) -> list[float]:
    return [bar.get_height() for bar in bars]


def test_by_hand_one_bar_a_key_for_every_temperature():
    """Scores [2, 0] at temperature 2 are [1, 0]: e/(e+1) and 1/(e+1)."""
    ax = softmax_temperature(SCORES, ["law", "the"], [1, 2])
    sharp, flat = ax.containers
    close(heights(sharp), [0.880797, 0.119203], atol=1e-6, rtol=0)
    close(heights(flat), [0.731059, 0.268941], atol=1e-6, rtol=0)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["law", "the"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1", "2"]


def test_bars_of_a_key_stand_side_by_side_around_its_label():
    ax = softmax_temperature(SCORES, ["law", "the"], [0.5, 1, 2])
    middles = [[bar.get_x() + bar.get_width() / 2 for bar in bars] for bars in ax.containers]
    close([sum(places) / 3 for places in zip(*middles, strict=True)], [0.0, 1.0])
    edges = [bars[0].get_x() for bars in ax.containers]
    close([b - a for a, b in pairwise(edges)], [0.8 / 3] * 2)


def test_one_temperature_is_enough():
    close(
        heights(softmax_temperature(SCORES, ["law", "the"], [1]).patches),
        [0.880797, 0.119203],
        atol=1e-6,
        rtol=0,
    )


def test_it_draws_where_it_is_told():
    ax = softmax_temperature(SCORES, ["law", "the"], [1])
    assert softmax_temperature(SCORES, ["law", "the"], [2], ax=ax) is ax


def test_scores_without_names_are_refused():
    with pytest.raises(ValueError, match="2 scores but 1 keys"):
        softmax_temperature(SCORES, ["law"], [1])


@pytest.mark.parametrize("temperature", [0, -1])
def test_a_temperature_that_is_not_above_zero_is_refused(temperature):
    with pytest.raises(ValueError, match=rf"above 0, got \[1, {temperature}\]"):
        softmax_temperature(SCORES, ["law", "the"], [1, temperature])
