"""How far two people agree who marked the same written answers, in numbers a teacher can use."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

Pair = tuple[float, float]  # the points that the first and the second marker gave one answer


@dataclass(frozen=True, slots=True)
class Agreement:
    """What two markers gave the same answers, compared. `stricter` < 0: the second gives less."""

    n: int
    same: int
    within_one: int
    difference: float  # mean of the second's points less the first's
    kappa: float | None  # quadratic weighted; None where it is not defined
    kappa_range: Pair | None  # the least and the most that it is without any one of the answers
    constant: bool  # somebody gave everybody the same

    def told(self, first: str, second: str) -> list[str]:
        """The comparison in words, a line each."""
        lines = [
            f"{self.n} answers marked by both",
            f"{self.same} with the same points, {self.within_one} within one point",
            self._stricter(first, second),
        ]
        if self.kappa is None:
            return [*lines, "quadratic weighted kappa: not defined, all points are the same"]
        line = f"quadratic weighted kappa: {self.kappa:.2f} (1 is agreement, 0 is chance)"
        if self.constant:
            return [*lines, f"{line}; it means nothing here: one of the two gave all the same"]
        if self.kappa_range is None:
            return [*lines, line]
        low, high = self.kappa_range
        caution = f"leaving out any one answer moves it between {low:.2f} and {high:.2f}"
        return [*lines, f"{line}; {caution}"]

    def _stricter(self, first: str, second: str) -> str:
        if abs(self.difference) < 0.005:
            return f"{first} and {second} give the same on average"
        name = second if self.difference < 0 else first
        return f"{name} is stricter, by {abs(self.difference):.2f} points on average"


def agreement(pairs: Sequence[Pair]) -> Agreement:
    """Compare two markers; there is at least one pair."""
    without_one = [kappa([*pairs[:at], *pairs[at + 1 :]]) for at in range(len(pairs))]
    known = [value for value in without_one if value is not None]
    return Agreement(
        n=len(pairs),
        same=sum(a == b for a, b in pairs),
        within_one=sum(abs(a - b) <= 1 for a, b in pairs),
        difference=fmean(b - a for a, b in pairs),
        kappa=kappa(pairs),
        kappa_range=(min(known), max(known)) if known else None,
        constant=any(len(set(points)) == 1 for points in zip(*pairs, strict=True)),
    )


def kappa(pairs: Sequence[Pair]) -> float | None:
    """Cohen's weighted kappa with quadratic weights: 1 is agreement, 0 what chance would give.

    One less the mean squared difference of two marks of one answer, over that of any mark of the
    first with any of the second. None where both gave every answer the same points.
    """
    by_chance = [(a - b) ** 2 for (a, _), (_, b) in product(pairs, pairs)]
    if not any(by_chance):
        return None
    return 1 - fmean((a - b) ** 2 for a, b in pairs) / fmean(by_chance)
