"""What has changed for one student between the tests of then, as the record tells, and of now."""

from dataclasses import dataclass

from autograde.judging import Judged
from autograde.record import Score
from autograde.run import Verdict
from autograde.source import Chapter, Exercise


@dataclass(frozen=True, slots=True)
class Change:
    """What one student's exercise is worth by the tests of then and of now."""

    student: str
    exercise: str
    old: float
    new: float
    tests: dict[str, tuple[str, str]]  # test -> state then, state now; "-" where there is none
    lasting: bool  # the tests are those of then, so old verdicts can be kept

    @property
    def lowers(self) -> bool:
        return self.new < self.old

    def as_json(self, *, allow_lower: bool) -> dict:
        return {
            "student": self.student,
            "exercise": self.exercise,
            "old": self.old,
            "new": self.new,
            "difference": self.new - self.old,
            "kept": self.lowers and not allow_lower,
            "tests": {test: list(states) for test, states in self.tests.items()},
        }


def changes(
    chapter: Chapter,
    exercises: list[str],
    judged: Judged,
    before: dict,
    in_book: dict[str, Score],
) -> list[Change]:
    """The exercises of one student whose tests say something else than the record `before`."""
    found = []
    for ident in exercises:
        then = old_verdicts(before, ident)
        now = {test.id: judged.verdicts[test.id] for test in chapter.exercises[ident].tests}
        states = {
            test: (_state(then.get(test)), _state(now.get(test)))
            for test in dict.fromkeys([*then, *now])
            if _state(then.get(test)) != _state(now.get(test))
        }
        old, new = _points(then, in_book), _points(now, in_book)
        if states or old != new:
            lasting = same_tests(before, chapter.exercises[ident])
            found.append(Change(judged.student, ident, old, new, states, lasting))
    return found


def old_verdicts(record: dict, exercise: str) -> dict[str, Verdict]:
    """The verdicts of one exercise that a record holds, by test."""
    return {
        test["test"]: Verdict(**test) for test in record["tests"] if test["exercise"] == exercise
    }


def same_tests(record: dict, exercise: Exercise) -> bool:
    """True when these are the tests that the record tells of, worth the same points."""
    then = {test: verdict.points for test, verdict in old_verdicts(record, exercise.id).items()}
    return then == {test.id: test.header["points"] for test in exercise.tests}


def _state(verdict: Verdict | None) -> str:
    return "-" if verdict is None else verdict.state


def _points(verdicts: dict[str, Verdict], in_book: dict[str, Score]) -> float:
    """What counts: a teacher's own score, where there is one, else the verdict's."""
    return sum(
        in_book[test].points
        if test in in_book and in_book[test].manual is not None
        else verdict.score
        for test, verdict in verdicts.items()
    )
