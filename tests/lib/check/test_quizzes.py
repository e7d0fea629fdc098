"""Quizzes: right minus wrong, and a key that may be shown."""

import pytest

from plainformer import check
from plainformer.check import CheckFailed

KEY = {"one": "true", "two": "false", "three": "depends", "four": "true"}


def test_all_right_passes_whatever_the_case():
    check.quiz({item: f" {answer.upper()} " for item, answer in KEY.items()}, KEY, "quiz")


def test_a_wrong_answer_costs_a_right_one_and_an_open_one_nothing():
    answers = {"one": "true", "two": "false", "three": "true", "four": None}
    check.quiz(answers, KEY, "quiz", at_least=1)
    with pytest.raises(CheckFailed, match="right minus wrong is 1, this needs 2") as caught:
        check.quiz(answers, KEY, "quiz", at_least=2)
    assert "look again at: three" in str(caught.value)


@pytest.mark.parametrize(
    ("answers", "rule"),
    [
        (None, "returned-nothing"),
        (["true"], "quiz-form"),
        ({"five": "true"}, "quiz-form"),
        ({}, "quiz-score"),
        (dict.fromkeys(KEY, "true"), "quiz-score"),
    ],
)
def test_rejected(answers, rule):
    with pytest.raises(CheckFailed) as caught:
        check.quiz(answers, KEY, "quiz")
    assert caught.value.rule == rule


def test_a_sealed_key_tells_all_right_from_not_and_shows_no_answer():
    sealed = check.seal(KEY)
    assert not any(answer in sealed for answer in KEY.values())
    check.quiz(KEY, sealed, "quiz")
    with pytest.raises(CheckFailed) as caught:
        check.quiz({**KEY, "one": "false"}, sealed, "quiz")
    assert caught.value.rule == "quiz-sealed"
    with pytest.raises(CheckFailed, match="not among the items"):
        check.quiz({"five": "true"}, sealed, "quiz")


def test_an_answer_that_is_none_of_the_choices_is_named():
    with pytest.raises(CheckFailed, match="two is 'perhaps', one of 'true', 'false' is asked for"):
        check.quiz({"one": None, "two": "perhaps"}, KEY, "quiz", choices=["true", "false"])


def test_a_part_of_a_quiz_leaves_the_other_items_alone():
    half = {"one": "true", "two": "false"}
    check.quiz({**KEY, "three": "wrong"}, half, "first half", part=True)
    check.quiz({**KEY, "three": "wrong"}, check.seal(half), "first half", part=True)


def test_the_score_may_be_below_nothing():
    with pytest.raises(CheckFailed, match="right minus wrong is -4, this needs 1"):
        check.quiz(dict.fromkeys(KEY, "never"), KEY, "quiz", at_least=1)
