import pytest
import torch

from plainformer.data.toy import START, as_ids, as_text, reversal
from plainformer.seeding import generator


def test_letters_and_ids_by_hand():
    assert as_ids("abz").tolist() == [1, 2, 26]
    assert as_text(torch.tensor([START, 8, 9])) == ".hi"


def test_text_survives_the_round_trip():
    assert as_text(as_ids("attention")) == "attention"
    assert as_ids("").shape == (0,)


def test_the_target_is_the_source_read_backwards_and_the_decoder_gets_it_one_step_late():
    source, shifted, target = reversal(3, 7, generator(0))
    assert source.shape == shifted.shape == target.shape == (3, 7)
    for row, late, back in zip(source.tolist(), shifted.tolist(), target.tolist(), strict=True):
        assert back == row[::-1]
        assert late == [START, *back[:-1]]


def test_symbols_lie_in_their_range_and_all_of_them_occur():
    source, _, _ = reversal(200, 5, generator(0), n_symbols=3)
    assert sorted(set(source.flatten().tolist())) == [1, 2, 3]


def test_the_generator_alone_decides():
    once = reversal(2, 5, generator(0))
    torch.rand(3)
    assert all(map(torch.equal, once, reversal(2, 5, generator(0))))
    assert not torch.equal(once[0], reversal(2, 5, generator(1))[0])


def test_one_symbol_is_its_own_reverse():
    source, shifted, target = reversal(2, 1, generator(0))
    assert torch.equal(source, target)
    assert shifted.tolist() == [[START], [START]]


@pytest.mark.parametrize("sizes", [(0, 3, 26), (2, 0, 26), (2, 3, 0), (2, 3, 27)])
def test_sizes_that_cannot_be_are_refused(sizes):
    b, length, n_symbols = sizes
    with pytest.raises(ValueError, match=f"got b={b}, length={length} and n_symbols={n_symbols}"):
        reversal(b, length, generator(0), n_symbols)


def test_letters_that_are_not_there_are_named():
    with pytest.raises(ValueError, match=r"got \['!', 'É'\]"):
        as_ids("É!a")
