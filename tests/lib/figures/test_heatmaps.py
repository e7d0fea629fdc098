import pytest
import torch
from matplotlib.colors import to_rgb

from plainformer.figures.heatmaps import attention_map

WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.05, 0.95]])


def labels(ticks) -> list[str]:
    return [tick.get_text() for tick in ticks]


def test_rows_are_queries_and_columns_are_keys():
    ax = attention_map(WEIGHTS, ["its", "use"], ["the", "law", "is"])
    assert labels(ax.get_yticklabels()) == ["its", "use"]
    assert labels(ax.get_xticklabels()) == ["the", "law", "is"]
    assert ax.images[0].get_array().tolist() == WEIGHTS.tolist()
    assert ax.yaxis_inverted()  # the first query is on top, as in the matrix


def test_more_weight_is_darker_and_maps_stay_comparable():
    image = attention_map(WEIGHTS, ["its", "use"], ["the", "law", "is"]).images[0]
    light = [sum(image.cmap(image.norm(weight))[:3]) for weight in (0.0, 0.2, 0.7, 1.0)]
    assert light == sorted(light, reverse=True)
    assert image.get_clim() == (0, 1)


def test_numbers_stand_in_their_cells_and_can_be_read():
    ax = attention_map(WEIGHTS, ["its", "use"], ["the", "law", "is"], numbers=True)
    written = {text.get_position(): text for text in ax.texts}
    assert {place: text.get_text() for place, text in written.items()} == {
        **{(0, 0): "0.70", (1, 0): "0.20", (2, 0): "0.10"},
        **{(0, 1): "0.00", (1, 1): "0.05", (2, 1): "0.95"},
    }
    for (column, row), text in written.items():
        paper = ax.images[0].cmap(WEIGHTS[row, column].item())[:3]
        assert contrast(paper, to_rgb(text.get_color())) >= 4.5  # WCAG 2.1 level AA


def test_a_number_can_be_read_whatever_the_weight():
    weights = torch.linspace(0, 1, 101)[None]
    ax = attention_map(weights, ["its"], [str(i) for i in range(101)], numbers=True)
    for text, weight in zip(ax.texts, weights[0].tolist(), strict=True):
        paper = ax.images[0].cmap(weight)[:3]
        assert contrast(paper, to_rgb(text.get_color())) >= 4.5, weight


def contrast(one, other) -> float:
    """The contrast ratio of two sRGB colours, by the formula of WCAG 2.1."""

    def luminance(colour):
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_it_draws_where_it_is_told_and_takes_weights_that_learn():
    here = attention_map(WEIGHTS.clone().requires_grad_(), ["a", "b"], ["c", "d", "e"])
    assert attention_map(WEIGHTS, ["a", "b"], ["c", "d", "e"], ax=here) is here


def test_labels_that_do_not_fit_are_refused_with_both_sizes():
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but the labels name 3 queries and 2"):
        attention_map(WEIGHTS, ["the", "law", "is"], ["its", "use"])
