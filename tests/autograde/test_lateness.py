"""Days late, slip days and points due: by hand, and against every possible spending."""

import itertools
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograde.lateness import Dates, Policy, Work, days_late, settle

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 10, 12, 18, tzinfo=BERLIN)
TENTH = Policy(zone=BERLIN, cost=Fraction(1, 10), cap=Fraction(1, 2))


def late(days, points=10.0, **dates):
    return Work(
        submitted=MONDAY + timedelta(days=days),
        points=points,
        dates=Dates(deadline=MONDAY, **dates),
    )


def test_each_day_costs_a_tenth_up_to_half():
    works = {"a": late(0), "b": late(2), "c": late(40)}
    found = settle(TENTH, works)
    assert [found[slug].points for slug in "abc"] == [10.0, 8.0, 5.0]
    assert [found[slug].why for slug in "abc"] == [
        "in time",
        "2 days late: 0.2 of the points lost",
        "40 days late: 0.5 of the points lost, the most there is",
    ]


def test_slip_days_go_where_a_day_saves_most():
    works = {"a": late(3, points=4.0), "b": late(2, points=9.0)}
    found = settle(replace(TENTH, slip_days=3), works)
    assert (found["a"].slip_days, found["a"].points) == (1, 3.2)
    assert (found["b"].slip_days, found["b"].points) == (2, 9.0)


def test_after_the_hard_end_there_is_nothing_and_no_slip_day_goes_there():
    works = {"a": late(5, hard_end=MONDAY + timedelta(days=4)), "b": late(3, points=1.0)}
    found = settle(replace(TENTH, slip_days=3), works)
    assert (found["a"].points, found["a"].slip_days) == (0.0, 0)
    assert found["a"].why == "handed in after the hard end, 2026-10-16 18:00: no points"
    assert (found["b"].points, found["b"].slip_days) == (1.0, 3)


def test_an_extension_past_the_hard_end_moves_it():
    end, longer = MONDAY + timedelta(days=4), MONDAY + timedelta(days=6)
    found = settle(TENTH, {"a": late(6, hard_end=end, extended=longer)})
    assert found["a"].points == 10.0
    assert found["a"].why == "in time with the extension to 2026-10-18 18:00"


@pytest.mark.parametrize(
    ("seconds", "days"), [(-1, 0), (0, 0), (1, 1), (86400, 1), (86401, 2), (7 * 86400, 7)]
)
def test_a_day_begun_counts(seconds, days):
    assert days_late(MONDAY.astimezone(UTC) + timedelta(seconds=seconds), MONDAY, BERLIN) == days


def test_a_day_is_a_day_on_the_wall_when_the_clocks_change():
    # Berlin put its clocks back on 25 October 2026: that day had 25 hours.
    due = datetime(2026, 10, 24, 18, tzinfo=BERLIN)
    after_25_hours = datetime(2026, 10, 25, 17, tzinfo=UTC)
    assert after_25_hours - due == timedelta(hours=25)
    assert days_late(after_25_hours, due, BERLIN) == 1


def test_no_deadline_or_no_cost_loses_nothing():
    free = late(40)
    assert settle(Policy(), {"a": free})["a"].points == 10.0
    assert settle(TENTH, {"a": replace(free, dates=Dates())})["a"].why == "no deadline"


# Properties, over small random courses

DAYS = st.integers(0, 9)
FRACTION = st.integers(0, 12).map(lambda twelfths: Fraction(twelfths, 12))


@st.composite
def a_work(draw):
    hard = draw(st.none() | DAYS)
    return Work(
        submitted=MONDAY + timedelta(days=draw(DAYS), hours=draw(st.integers(-23, 23))),
        points=draw(st.sampled_from([0.0, 1.0, 2.5, 3.0, 7.0])),
        dates=Dates(
            deadline=MONDAY, hard_end=None if hard is None else MONDAY + timedelta(days=hard)
        ),
    )


POLICIES = st.builds(
    Policy, zone=st.just(BERLIN), slip_days=st.integers(0, 8), cost=FRACTION, cap=FRACTION
)
COURSES = st.lists(a_work(), min_size=1, max_size=4).map(
    lambda works: {f"{number:02d}": work for number, work in enumerate(works)}
)
GIVEN = st.lists(st.tuples(DAYS, DAYS), min_size=4, max_size=4)


def extended(works, days):
    """The works with that many days of extension; 0 is none."""
    return {
        slug: replace(
            work,
            dates=replace(work.dates, extended=MONDAY + timedelta(days=more) if more else None),
        )
        for (slug, work), more in zip(works.items(), days, strict=False)
    }


@given(POLICIES, COURSES, GIVEN)
def test_a_longer_extension_never_lowers_any_chapter_nor_the_total(policy, works, given_days):
    few = settle(policy, extended(works, [less for less, _ in given_days]))
    more = settle(policy, extended(works, [less + added for less, added in given_days]))
    for slug in works:
        assert more[slug].points >= few[slug].points
    total = [math.fsum(one.points for one in found.values()) for found in (few, more)]
    assert total[1] >= total[0]


@given(POLICIES, COURSES, GIVEN)
def test_no_other_spending_gives_more_in_total(policy, works, given_days):
    works = extended(works, [less for less, _ in given_days])
    found = settle(policy, works)
    assert sum(one.slip_days for one in found.values()) <= policy.slip_days

    def points(slug, work, spent):
        if found[slug].why.startswith("handed in after"):
            return 0
        lost = min(policy.cap, policy.cost * found[slug].days_late) - policy.cost * spent
        return Fraction(work.points) * (1 - max(0, lost))

    most = max(
        sum(points(*item, spent) for item, spent in zip(works.items(), spending, strict=True))
        for spending in itertools.product(range(policy.slip_days + 1), repeat=len(works))
        if sum(spending) <= policy.slip_days
    )
    assert sum(Fraction(w.points) * (1 - found[s].lost) for s, w in works.items()) == most


@given(POLICIES, COURSES)
def test_no_points_are_made_up_and_no_slip_day_is_wasted(policy, works):
    for slug, outcome in settle(policy, works).items():
        assert 0 <= outcome.points <= works[slug].points
        assert 0 <= outcome.slip_days <= outcome.days_late * (works[slug].points > 0)
        assert outcome.why
