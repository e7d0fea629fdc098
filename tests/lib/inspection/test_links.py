import pytest
import torch

from plainformer.inspection.links import strongest_links

TOKENS = ["[CLS]", "its", "law", "[SEP]"]
WEIGHTS = torch.tensor(
    [
        [0.10, 0.40, 0.40, 0.10],
        [0.10, 0.05, 0.75, 0.10],
        [0.50, 0.25, 0.15, 0.10],
        [0.90, 0.05, 0.03, 0.02],
    ]
)


def test_by_hand_rows_look_and_columns_are_looked_at():
    assert strongest_links(WEIGHTS, TOKENS) == [("its", "law", 0.75), ("law", "its", 0.25)]


def test_the_strongest_come_first_and_no_more_than_asked():
    assert strongest_links(WEIGHTS, TOKENS, n=1) == [("its", "law", 0.75)]


def test_ignoring_nothing_lists_the_special_tokens_too():
    links = strongest_links(WEIGHTS, TOKENS, n=2, ignore=())
    assert [link[:2] for link in links] == [("[SEP]", "[CLS]"), ("its", "law")]


def test_a_token_that_looks_at_itself_is_no_link():
    assert strongest_links(torch.eye(2), ["law", "its"], n=7) == [
        ("law", "its", 0.0),
        ("its", "law", 0.0),
    ]


def test_tokens_of_another_sentence_are_refused():
    with pytest.raises(ValueError, match="4 positions, but there are 3 tokens"):
        strongest_links(WEIGHTS, TOKENS[:3])
