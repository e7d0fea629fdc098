import pytest
import torch

from plainformer.generation.greedy import greedy
from plainformer.seeding import generator

START, END = 1, 2


def follow(*rows):
    """Next symbols by a script: row b writes `rows[b]`, whatever stands before."""

    def next_logits(written):
        step = written.shape[1] - 1
        symbols = torch.tensor([row[step] for row in rows])
        return torch.nn.functional.one_hot(symbols, 6).double()

    return next_logits


def written(next_logits, b, max_length=5):
    out = greedy(next_logits, b=b, start_id=START, end_id=END, max_length=max_length)
    return out.tolist()


def test_by_hand_and_behind_an_end_stands_nothing_but_ends():
    assert written(follow([3, END, 4, 4, 4], [4, 5, 3, END, 4]), 2) == [
        [3, END, END, END],
        [4, 5, 3, END],
    ]


def test_it_stops_at_max_length_without_an_end():
    assert written(follow([3, 4, 5, 3, 4]), 1, max_length=3) == [[3, 4, 5]]


def test_it_stops_as_soon_as_all_have_ended():
    """A script of two symbols would fail at the third."""
    assert written(follow([3, END], [END, 3]), 2) == [[3, END], [END, END]]


@pytest.mark.parametrize("seed", range(7))
def test_it_agrees_with_a_walk_symbol_by_symbol(seed):
    table = torch.randn(6, 6, generator=generator(seed))  # what follows depends on the last symbol
    last, want = START, []
    while len(want) < 5 and last != END:
        last = max(range(6), key=lambda symbol: table[last, symbol].item())
        want.append(last)
    assert written(lambda ids: table[ids[:, -1]], 1) == [want]


def test_it_is_asked_with_the_start_and_all_that_was_written():
    asked = []

    def next_logits(ids):
        asked.append(ids.tolist())
        return torch.eye(6)[[3]]

    written(next_logits, 1, max_length=3)
    assert asked == [[[1]], [[1, 3]], [[1, 3, 3]]]


def test_of_equally_likely_symbols_the_smallest_id_is_taken():
    assert written(lambda ids: torch.tensor([[0.0, 0.0, 0.0, 7.0, 7.0, 0.0]]), 1, 1) == [[3]]


def test_no_gradients_are_kept():
    weight = torch.eye(6, requires_grad=True)
    seen = []

    def next_logits(ids):
        seen.append(weight[ids[:, -1]])
        return seen[-1]

    written(next_logits, 1)
    assert not any(logits.requires_grad for logits in seen)


@pytest.mark.parametrize(("b", "max_length"), [(0, 3), (3, 0)])
def test_sizes_below_one_are_refused(b, max_length):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        written(follow([3]), b, max_length)
