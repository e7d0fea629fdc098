"""What late work is worth: pure functions of times and points, computed anew at every export.

A day late is a day begun, by the clock on the wall. Each costs a fraction of the points, up to a
cap, and a slip day takes away the cost of one day. Slip days go where they save the most points,
so no other spending gives a student more in total.

Promised: an extension, or a longer one, never lowers anybody's points, in no chapter and so not in
total. What a slip day saves in a chapter does not depend on extensions, so these never change the
order in which chapters are served; they only shorten what a chapter asks for. Work that came after
its hard end asks for none, and an extension that saves it makes it work in time, which asks for
none either.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What being late costs; without arguments, nothing."""

    zone: datetime.tzinfo = datetime.UTC
    slip_days: int = 0
    cost: Fraction = Fraction(0)  # fraction of the points that a day costs
    cap: Fraction = Fraction(1)  # the largest fraction that is lost

    def lost(self, days: int, slip_days: int) -> Fraction:
        """The fraction of the points that is lost, so many days late, with so many slip days."""
        return max(Fraction(0), min(self.cap, self.cost * days) - self.cost * slip_days)

    def costly(self, days: int) -> tuple[int, Fraction]:
        """How many of these days cost the full amount, and what one more costs before the cap."""
        if not self.cost:
            return 0, Fraction(0)
        whole, rest = divmod(self.cap, self.cost)
        return (whole, rest) if days > whole else (days, Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """When one chapter is due for one student; times know their zone."""

    deadline: datetime.datetime | None = None
    hard_end: datetime.datetime | None = None
    extended: datetime.datetime | None = None  # never before the deadline

    @property
    def due(self) -> datetime.datetime | None:
        return self.extended or self.deadline

    @property
    def end(self) -> datetime.datetime | None:
        """After this there are no points. An extension that goes further moves it along."""
        if self.hard_end is None or self.extended is None:
            return self.hard_end
        return max(self.hard_end, self.extended, key=datetime.datetime.timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One chapter as one student handed it in. `points` are raw, as the gradebook has them."""

    submitted: datetime.datetime
    points: float
    dates: Dates = Dates()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one chapter of one student."""

    days_late: int
    slip_days: int
    lost: Fraction
    points: float
    why: str


def days_late(
    submitted: datetime.datetime, due: datetime.datetime | None, zone: datetime.tzinfo
) -> int:
    """Days begun after the time due. When the clocks change, a day still ends at the same hour."""
    if due is None:
        return 0
    on_the_wall = [moment.astimezone(zone).replace(tzinfo=None) for moment in (submitted, due)]
    return max(0, -((on_the_wall[1] - on_the_wall[0]) // DAY))


def settle(policy: Policy, works: Mapping[str, Work]) -> dict[str, Outcome]:
    """Points due for everything that one student handed in: chapter -> outcome."""
    late = {
        slug: days_late(work.submitted, work.dates.due, policy.zone) for slug, work in works.items()
    }
    spent = _spend(policy, works, late)
    return {slug: _outcome(policy, work, late[slug], spent[slug]) for slug, work in works.items()}


def _spend(policy: Policy, works: Mapping[str, Work], late: Mapping[str, int]) -> dict[str, int]:
    """Slip days for each chapter: days that save most come first, then in the given order."""
    line = []
    for slug, work in works.items():
        if not _after(work.submitted, work.dates.end):
            whole, rest = policy.costly(late[slug])
            line += [(policy.cost * Fraction(work.points), slug, whole)]
            line += [(rest * Fraction(work.points), slug, 1)]
    left, spent = policy.slip_days, dict.fromkeys(works, 0)
    for saved, slug, days in sorted(line, key=lambda item: -item[0]):
        taken = min(left, days) if saved > 0 else 0
        spent[slug] += taken
        left -= taken
    return spent


def _outcome(policy: Policy, work: Work, late: int, spent: int) -> Outcome:
    dates = work.dates
    if _after(work.submitted, dates.end):
        why = f"handed in after the hard end, {_shown(dates.end, policy)}: no points"
        return Outcome(late, 0, Fraction(1), 0.0, why)
    lost = policy.lost(late, spent)
    points = float(Fraction(work.points) * (1 - lost))
    return Outcome(late, spent, lost, points, _why(policy, dates, late, spent, lost))


def _why(policy: Policy, dates: Dates, late: int, spent: int, lost: Fraction) -> str:
    if dates.due is None:
        return "no deadline"
    extended = f" with the extension to {_shown(dates.due, policy)}" if dates.extended else ""
    if not late:
        return f"in time{extended}"
    slip = f", {_counted(spent, 'slip day')} spent" if spent else ""
    most = ", the most there is" if lost and lost == policy.cap else ""
    return (
        f"{_counted(late, 'day')} late{extended}{slip}: {float(lost):.4g} of the points lost{most}"
    )


def _after(moment: datetime.datetime, end: datetime.datetime | None) -> bool:
    # Times of one zone are compared by their clocks, which the change of clocks makes wrong.
    return end is not None and moment.timestamp() > end.timestamp()


def _shown(moment: datetime.datetime, policy: Policy) -> str:
    return f"{moment.astimezone(policy.zone):%Y-%m-%d %H:%M}"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' if number != 1 else ''}"
