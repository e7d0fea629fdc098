"""How a class did in each exercise, and which exercises look as if their checks had a hole.

Statistics of classical test theory, over those who attempted an exercise: how many solved it, and
its discrimination, the correlation of its points with the points of the same people in all other
exercises. People who are good at the rest are good at a sound exercise too; where they are not, the
check may accept what it should not, refuse what it should not, or ask for something else.

The exercise is left out of the total, which would otherwise correlate with itself: the corrected
item-total correlation, which the field wants above 0.2
(https://easystats.github.io/performance/reference/item_discrimination.html).
"""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograde.source import Chapter

EASY, HARD, FLAT = 0.95, 0.30, 0.20
FEW = 20  # people below which a share or a correlation is mostly chance


@dataclass(frozen=True, slots=True)
class Item:
    """One exercise in one class. Shares are from 0 to 1, None where nobody attempted it."""

    id: str
    title: str
    out_of: float
    people: int  # whose work is graded
    attempted: int
    solved: float | None  # share of full points, of those who attempted
    mean: float | None  # mean share of the points, of those who attempted
    discrimination: float | None  # None where it is not defined
    seconds: float | None  # median time of the grader, not of the learner
    mistakes: tuple[tuple[str, int], ...]  # what went wrong and for how many, commonest first

    @property
    def flags(self) -> tuple[str, ...]:
        """What looks suspicious, a sentence each."""
        told = []
        if self.solved is not None and self.solved > EASY:
            told.append(
                f"{self.solved:.0%} solve it: either it is easy, or its checks accept too much"
            )
        if self.solved is not None and self.solved < HARD:
            told.append(
                f"only {self.solved:.0%} solve it: either it is hard or badly explained, or its "
                "checks refuse right answers"
            )
        if self.discrimination is not None and self.discrimination < FLAT:
            told.append(
                f"discrimination {self.discrimination:.2f}: those who do well elsewhere do hardly "
                "better here; it may check something else than it teaches"
            )
        few = f" ({self.attempted} tried it, so this may be chance)" * (self.attempted < FEW)
        return tuple(flag + few for flag in told)


def items(
    chapter: Chapter, points: Mapping[str, Mapping[str, float]], records: Mapping[str, dict]
) -> list[Item]:
    """An Item for each exercise: `points` are student -> test -> points, of graded work only."""
    got = {
        student: {
            one.id: sum(line.get(test.id, 0.0) for test in one.tests)
            for one in chapter.exercises.values()
        }
        for student, line in points.items()
    }
    return [_item(one, got, records) for one in chapter.exercises.values()]


def _item(exercise, got: Mapping[str, Mapping[str, float]], records: Mapping[str, dict]) -> Item:
    found = {
        student: [t for t in records[student]["tests"] if t["exercise"] == exercise.id]
        for student in got
    }
    tried = [s for s, tests in found.items() if any(t["state"] != "not written" for t in tests)]
    mine = [got[student][exercise.id] for student in tried]
    rest = [sum(got[student].values()) - got[student][exercise.id] for student in tried]
    seconds = [sum(test["seconds"] for test in found[student]) for student in tried]
    return Item(
        id=exercise.id,
        title=exercise.title,
        out_of=exercise.points,
        people=len(got),
        attempted=len(tried),
        solved=statistics.fmean(one >= exercise.points for one in mine) if mine else None,
        mean=statistics.fmean(mine) / exercise.points if mine else None,
        discrimination=correlation(mine, rest),
        seconds=statistics.median(seconds) if seconds else None,
        mistakes=_mistakes(found[student] for student in tried),
    )


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Pearson's r, or None where it is not defined: fewer than three people, or all alike."""
    if len(xs) < 3 or len(set(xs)) == 1 or len(set(ys)) == 1:
        return None
    return statistics.correlation(xs, ys)


def _mistakes(per_student) -> tuple[tuple[str, int], ...]:
    """Each mistake counts once a person, by its name, else by the rule or state it broke."""
    counts = Counter()
    for tests in per_student:
        missed = [test for test in tests if test["state"] != "pass"]
        counts.update({t["mistake"] or t["rule"] or t["state"] for t in missed})
    return tuple(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
