import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from plainformer.data.batching import pad, shift_right, text_pairs
from plainformer.tokenizers.chars import CharTokenizer


@given(st.lists(st.lists(st.integers(0, 99), max_size=7), min_size=1, max_size=5))
def test_padding_agrees_with_torch(sequences):
    ids, sees = pad(sequences, 101)
    tensors = [torch.tensor(sequence, dtype=torch.long) for sequence in sequences]
    assert torch.equal(ids, pad_sequence(tensors, batch_first=True, padding_value=101))
    assert torch.equal(sees, ids != 101)


def test_shifted_by_hand():
    """Every row of any number of axes, one step, and the last falls off; the targets stay."""
    targets = torch.tensor([[[7, 8, 9]], [[4, 5, 6]]])
    assert shift_right(targets, 1).tolist() == [[[1, 7, 8]], [[1, 4, 5]]]
    assert targets.tolist() == [[[7, 8, 9]], [[4, 5, 6]]]
    assert shift_right(torch.tensor([[7]]), 1).tolist() == [[1]]


def test_a_batch_of_texts_by_hand():
    """a, b, c are 3, 4, 5: START is 1, END 2, PAD 0."""
    (source, shifted, sees), targets = text_pairs([("abc", "c"), ("b", "ba")], CharTokenizer("abc"))
    assert source.tolist() == [[3, 4, 5], [4, 0, 0]]
    assert sees.int().tolist() == [[1, 1, 1], [1, 0, 0]]
    assert targets.tolist() == [[5, 2, 0], [4, 3, 2]]
    assert shifted.tolist() == [[1, 5, 2], [1, 4, 3]]


def test_empty_texts_still_end():
    (source, shifted, sees), targets = text_pairs([("", "")], CharTokenizer("a"))
    assert (source.shape, sees.shape) == ((1, 0), (1, 0))
    assert (shifted.tolist(), targets.tolist()) == ([[1]], [[2]])


def test_no_sequences_are_refused():
    with pytest.raises(ValueError, match="a batch must hold at least one sequence, got 0"):
        pad([], 0)
