"""Agreement of two markers: against a hand calculation, other programs, and what it must obey."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from autograde.agreement import agreement, kappa

POINTS = st.integers(0, 6).map(lambda halves: halves / 2)
PAIRS = st.lists(st.tuples(POINTS, POINTS), min_size=1, max_size=12)

# Twenty people rated for anxiety, the first two of three raters: the data set `anxiety` of R's irr.
ANXIETY = list(
    zip(
        [3, 3, 3, 4, 5, 5, 2, 3, 5, 2, 2, 6, 1, 5, 2, 2, 1, 2, 4, 3],
        [3, 6, 4, 6, 2, 4, 2, 4, 3, 3, 2, 3, 3, 3, 2, 2, 1, 3, 3, 4],
        strict=True,
    )
)


def test_by_hand():
    """Marks 0 1 2 and 0 2 2: squared differences 0 1 0, and by chance 0 4 4 1 1 1 4 0 0."""
    assert kappa([(0, 0), (1, 2), (2, 2)]) == pytest.approx(1 - (1 / 3) / (15 / 9))


def test_as_irr_has_it():
    """R: kappa2(anxiety[, 1:2], "squared") is 0.297."""
    assert kappa(ANXIETY) == pytest.approx(0.297, abs=5e-4)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ([0, 1, 2, 3, 3, 2, 1, 0], [0, 1, 1, 3, 2, 2, 2, 1], 0.75),
        ([3, 3, 2, 0, 1, 3, 2], [0, 1, 2, 3, 3, 1, 2], -0.875),
        ([1, 1, 1, 1], [0, 1, 2, 1], 0.0),
    ],
)
def test_as_scikit_learn_has_it(first, second, value):
    """Values of cohen_kappa_score(..., weights="quadratic"), scikit-learn 1.9.1."""
    assert kappa(list(zip(first, second, strict=True))) == pytest.approx(value)


@given(PAIRS)
def test_it_does_not_matter_who_is_first(pairs):
    assert kappa(pairs) == pytest.approx(kappa([(b, a) for a, b in pairs]))


@given(PAIRS, st.integers(-5, 5), st.sampled_from([0.5, 2, 3]))
def test_another_scale_changes_nothing(pairs, shift, stretch):
    moved = [(shift + stretch * a, shift + stretch * b) for a, b in pairs]
    assert kappa(moved) == pytest.approx(kappa(pairs))


@given(st.lists(POINTS, min_size=2))
def test_the_same_marks_are_full_agreement(marks):
    assume(len(set(marks)) > 1)
    assert kappa([(mark, mark) for mark in marks]) == 1


@given(PAIRS)
def test_it_is_never_above_one(pairs):
    value = kappa(pairs)
    assert value is None or -1 - 1e-9 <= value <= 1


def test_where_all_points_are_the_same_it_is_not_defined():
    compared = agreement([(2, 2)] * 4)
    assert compared.kappa is None
    assert "not defined" in compared.told("A", "B")[-1]


def test_one_who_gives_all_the_same_is_pointed_out():
    told = agreement([(1, 1), (1, 2), (1, 0)]).told("A", "B")
    assert told[-1].endswith("it means nothing here: one of the two gave all the same")


def test_few_answers_say_how_little_they_tell():
    """Without one of the three in turn: 1 - (1/2) / (1/2), 1 - 0, 1 - (1/2) / (3/2)."""
    compared = agreement([(0, 0), (1, 2), (2, 2)])
    assert compared.kappa_range == (pytest.approx(0), 1)
    assert "leaving out any one answer moves it between 0.00 and 1.00" in compared.told("A", "B")[3]


def test_who_is_stricter_is_said():
    compared = agreement([(3, 1), (2, 2), (1, 0.5), (0, 0)])
    assert (compared.n, compared.same, compared.within_one) == (4, 2, 3)
    assert compared.difference == pytest.approx(-2.5 / 4)
    assert compared.told("A", "B")[2] == "B is stricter, by 0.62 points on average"
    assert agreement([(1, 3)]).told("A", "B")[2] == "A is stricter, by 2.00 points on average"
    assert agreement([(1, 2), (2, 1)]).told("A", "B")[2] == "A and B give the same on average"
