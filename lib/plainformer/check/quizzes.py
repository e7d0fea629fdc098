"""Quizzes: a dictionary of answers against a key, right minus wrong."""

import hashlib
import json
from collections.abc import Collection, Mapping

from plainformer.check.describe import value_in_words
from plainformer.check.failure import fail


def seal(key: Mapping[str, object]) -> str:
    """A quiz's key that can be shown: its items and one digest, which tells all right from not."""
    answers = json.dumps({item: _plain(answer) for item, answer in key.items()}, sort_keys=True)
    return f"{' '.join(sorted(key))} = {hashlib.sha256(answers.encode()).hexdigest()[:16]}"


def quiz(
    answers,
    key: Mapping[str, object] | str,
    what: str,
    at_least: int | None = None,
    *,
    choices: Collection[object] = (),
    part: bool = False,
) -> None:
    """Score right minus wrong; open answers count neither way; a sealed key needs all right.

    With `choices`, any other answer is refused by name. With `part`, the dictionary may hold other
    items too, which are judged elsewhere.
    """
    sealed = isinstance(key, str)
    items = key.split(" = ")[0].split() if sealed else list(key)
    if answers is None:
        fail("returned-nothing", what)
    if not isinstance(answers, Mapping):
        fail("quiz-form", what, problem=f"expected a dictionary, got {value_in_words(answers)}")
    strange = {item: a for item, a in answers.items() if a is not None and _plain(a) not in choices}
    if choices and strange:
        item, answer = next(iter(strange.items()))
        allowed = ", ".join(map(repr, choices))
        fail("quiz-form", what, problem=f"{item} is {answer!r}, one of {allowed} is asked for")
    unknown = sorted(set(map(str, answers)) - set(items))
    if unknown and not part:
        fail("quiz-form", what, problem=f"{', '.join(unknown)} is not among the items")
    given = {item: _plain(answers[item]) for item in items if answers.get(item) is not None}
    if sealed:
        if seal({item: given.get(item) for item in items}) != key:
            fail("quiz-sealed", what)
        return
    again = [item for item in given if given[item] != _plain(key[item])]
    right = len(given) - len(again)
    score, needed = right - len(again), len(items) if at_least is None else at_least
    if score < needed:
        counts = {"right": right, "wrong": len(again), "open": len(items) - len(given)}
        shown = ", ".join(again) or "the open ones"
        fail("quiz-score", what, score=score, needed=needed, again=shown, **counts)


def _plain(answer) -> object:
    return answer.strip().lower() if isinstance(answer, str) else answer
