import json
from html.parser import HTMLParser

import pytest
import torch

from plainformer.figures.widgets import AttentionExplorer

TOKENS = ["its", "law"]
WEIGHTS = torch.tensor([[0.25, 0.75], [0.123456, 0.876544]])
HEADS = torch.stack([WEIGHTS, torch.eye(2)])


class Page(HTMLParser):
    """What a browser without our script reads: the tags in order, the attributes, the cells."""

    def __init__(self, widget):
        super().__init__()
        self.tags, self.attributes, self.cells, self.closed = [], {}, [], []
        self.feed(widget._repr_html_())
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes |= dict(attributes)
        if tag in ("caption", "th", "td"):
            self.cells.append("")

    def handle_endtag(self, tag):
        self.closed.append(tag)

    def handle_data(self, data):
        self.cells[-1] += data

    @property
    def data(self):
        return json.loads(self.attributes["data-json"])


def test_one_head_becomes_the_first_form():
    assert Page(AttentionExplorer(WEIGHTS, TOKENS, caption="layer 3")).data == {
        "tokens": ["its", "law"],
        "weights": [[0.25, 0.75], [0.1235, 0.8765]],
        "caption": "layer 3",
    }


def test_several_heads_become_the_second_form():
    assert Page(AttentionExplorer(HEADS, TOKENS, names=["a", "b"])).data == {
        "tokens": ["its", "law"],
        "heads": [
            {"name": "a", "weights": [[0.25, 0.75], [0.1235, 0.8765]]},
            {"name": "b", "weights": [[1.0, 0.0], [0.0, 1.0]]},
        ],
        "caption": "",
    }


def test_heads_without_names_are_counted_from_zero():
    heads = AttentionExplorer(HEADS, TOKENS).data["heads"]
    assert [head["name"] for head in heads] == ["head 0", "head 1"]


def test_the_table_inside_shows_every_weight_of_one_head():
    page = Page(AttentionExplorer(WEIGHTS, TOKENS, caption="layer 3"))
    assert page.tags[:3] == ["attention-explorer", "table", "caption"]
    assert page.cells == [
        "layer 3 (one row per query, one column per key)",
        *["", "its", "law"],
        *["its", "0.25", "0.75"],
        *["law", "0.12", "0.88"],
    ]


def test_the_table_inside_shows_the_strongest_key_of_each_of_several_heads():
    page = Page(AttentionExplorer(HEADS, TOKENS))
    assert page.cells == [
        "Attention weights: for each query and head, the key with the most weight",
        *["", "head 0", "head 1"],
        *["its", "law 0.75", "its 1.00"],
        *["law", "law 0.88", "law 1.00"],
    ]


def test_header_cells_say_what_they_head():
    html = AttentionExplorer(WEIGHTS, TOKENS)._repr_html_()
    assert html.count('scope="col"') == html.count('scope="row"') == 2


def test_every_tag_is_closed():
    page = Page(AttentionExplorer(HEADS, TOKENS))
    assert sorted(page.tags) == sorted(page.closed)


@pytest.mark.parametrize(
    "text", ['"><script>alert(1)</script>', "it's & <b>", "</attention-explorer>", "&quot;", "法"]
)
def test_whatever_a_text_holds_it_stays_a_text(text):
    page = Page(AttentionExplorer(HEADS, [text, text], names=[text, text], caption=text))
    assert set(page.tags) == {
        *["attention-explorer", "table", "caption", "thead", "tbody", "tr", "th", "td"]
    }
    assert page.data["tokens"] == [text, text]
    assert page.data["heads"][0]["name"] == page.data["caption"] == text
    assert page.cells[2] == text


def test_in_plain_text_it_names_itself():
    assert repr(AttentionExplorer(HEADS, TOKENS)) == "AttentionExplorer('its law', 2 head(s))"


def test_twenty_tokens_fit_and_twenty_one_are_refused():
    AttentionExplorer(torch.eye(20), ["a"] * 20)
    with pytest.raises(ValueError, match="at most 20 tokens, got 21; shorten the text"):
        AttentionExplorer(torch.eye(21), ["a"] * 21)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 2\), but there are 3 tokens"):
        AttentionExplorer(WEIGHTS, ["its", "law", "is"])
    with pytest.raises(ValueError, match="2 heads but there are 1 names"):
        AttentionExplorer(HEADS, TOKENS, names=["a"])


def test_a_map_that_is_not_square_is_refused(no_shape_hook):
    with pytest.raises(ValueError, match="the last two axes must both be 2"):
        AttentionExplorer(torch.ones(3, 2), TOKENS)


def test_weights_that_are_no_numbers_are_refused_rather_than_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        AttentionExplorer(torch.full((2, 2), torch.nan), TOKENS)._repr_html_()


def test_where_to_begin_is_told_by_numbers_and_checked():
    data = Page(AttentionExplorer(HEADS, TOKENS, start=(1, 0))).data
    assert (data["head"], data["query"]) == (1, 0)
    assert "head" not in Page(AttentionExplorer(HEADS, TOKENS)).data
    with pytest.raises(ValueError, match=r"below \(2, 2\), got \(2, 0\)"):
        AttentionExplorer(HEADS, TOKENS, start=(2, 0))
