import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainformer.tokenizers.chars import CharTokenizer


def test_by_hand():
    """The characters in order are b, é, 年: three special symbols come first."""
    chars = CharTokenizer(["éb", "年b"])
    assert chars.characters == "bé年"
    assert (chars.PAD, chars.START, chars.END) == (0, 1, 2)
    assert chars.encode("年bb") == [5, 3, 3]
    assert chars.vocab_size == 6


@given(st.text(max_size=20), st.text(max_size=5))
def test_text_survives_the_round_trip(text, more):
    chars = CharTokenizer(text + more)
    ids = chars.encode(text)
    assert chars.decode(ids) == text
    assert chars.decode([chars.START, *ids, chars.END, chars.PAD]) == text
    assert all(3 <= i < chars.vocab_size for i in ids)


@given(st.text(min_size=1, max_size=20), st.randoms())
def test_the_order_of_the_alphabet_does_not_matter(text, random):
    shuffled = list(text)
    random.shuffle(shuffled)
    assert CharTokenizer(shuffled).encode(text) == CharTokenizer(text).encode(text)


def test_what_stands_behind_the_first_end_is_not_read():
    chars = CharTokenizer("ab")
    assert chars.decode([3, 2, 4, 2, 4]) == "a"
    assert chars.decode([2]) == ""
    assert chars.decode([0, 3, 1, 4]) == "ab"


def test_characters_that_are_not_there_are_named():
    with pytest.raises(ValueError, match=r"got \['!', 'c'\] in 'abc!'"):
        CharTokenizer("ab").encode("abc!")


@pytest.mark.parametrize("i", [-1, 5])
def test_ids_that_are_not_there_are_refused(i):
    with pytest.raises(ValueError, match=rf"an id must be in 0..4, got {i}"):
        CharTokenizer("ab").decode([3, i])
