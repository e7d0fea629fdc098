"""Statistics of exercises: by hand, and against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograde.item_analysis import Item, correlation, items

# student -> (points of 90-double's two tests, points of 90-row-means): out of 1 + 2 and 3
CLASS = {"ada": (1, 2, 3), "bob": (1, 0, 3), "cyd": (0, 0, 0), "dan": (1, 2, 0), "eve": None}
TESTS = ("90-double-by-hand", "90-double-general", "90-row-means-by-hand")
OF = ("90-double", "90-double", "90-row-means")


def record(line, mistake="squared"):
    """What the grader found: eve has written nothing, others fail where they lack points."""
    tests = []
    for n, (test, exercise) in enumerate(zip(TESTS, OF, strict=True)):
        got = line[n] if line else 0
        state = "pass" if got else ("fail" if line else "not written")
        wrong = {"rule": "values", "mistake": mistake if n == 1 else None}
        tests.append({"test": test, "exercise": exercise, "state": state, "seconds": 0.5, **wrong})
    return {"tests": tests}


@pytest.fixture
def found(chapter):
    points = {who: dict(zip(TESTS, line or (0, 0, 0), strict=True)) for who, line in CLASS.items()}
    return items(chapter, points, {who: record(line) for who, line in CLASS.items()})


def test_shares_are_over_those_who_attempted(found):
    double, means = found
    assert (double.people, double.attempted) == (5, 4)
    assert double.solved == 0.5  # ada and dan have 3 of 3; eve does not count
    assert double.mean == pytest.approx((3 + 1 + 0 + 3) / 4 / 3)
    assert means.solved == 0.5
    assert double.seconds == 1.0  # two tests of half a second
    assert means.seconds == 0.5


def test_discrimination_leaves_the_exercise_out_of_the_total(found):
    double, means = found
    expected = np.corrcoef([3, 1, 0, 3], [3, 3, 0, 0])[0, 1]  # points here, points elsewhere
    assert double.discrimination == pytest.approx(expected)
    assert means.discrimination == pytest.approx(expected)


def test_a_mistake_counts_once_a_person_and_by_its_name(found):
    double, means = found
    assert double.mistakes == (("squared", 2), ("values", 1))  # bob and cyd; cyd fails both tests
    assert means.mistakes == (("values", 2),)


numbers = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30)


@given(numbers)
def test_the_correlation_is_numpys(pairs):
    xs, ys = zip(*pairs, strict=True)
    r = correlation(xs, ys)
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        assert r is None
    else:
        assert r == pytest.approx(np.corrcoef(xs, ys)[0, 1], abs=1e-9)


def test_two_people_have_no_correlation():
    assert correlation([0, 1], [1, 0]) is None


def item(**more):
    told = {"people": 40, "attempted": 40, "solved": 0.6, "mean": 0.7, "discrimination": 0.5}
    rest = {"id": "90-double", "title": "Double", "out_of": 3, "seconds": 0.1, "mistakes": ()}
    return Item(**{**told, **rest, **more})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"solved": 0.96}, ["96% solve it", "accept too much"]),
        ({"solved": 0.29}, ["only 29% solve it", "refuse right answers"]),
        ({"discrimination": 0.19}, ["discrimination 0.19"]),
        ({"solved": 1.0, "attempted": 19}, ["100% solve it", "19 tried it, so this may be chance"]),
        ({"discrimination": -0.4, "attempted": 8}, ["8 tried it, so this may be chance"]),
    ],
)
def test_what_looks_suspicious_is_said_in_a_sentence(more, words):
    (flag,) = item(**more).flags
    assert all(word in flag for word in words)
    assert ("chance" in flag) == ("attempted" in more)


def test_what_is_in_order_or_unknown_has_no_flag():
    assert item().flags == ()
    assert item(solved=0.95, discrimination=0.2).flags == ()
    assert item(solved=0.30).flags == ()
    nobody = {"attempted": 0, "solved": None, "mean": None, "discrimination": None}
    assert item(**nobody).flags == ()
