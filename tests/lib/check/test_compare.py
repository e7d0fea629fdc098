"""The checks on real answers: what passes, which rung stops the rest, when a mistake is named."""

import re

import numpy as np
import pytest
import torch
from einops import rearrange

from plainformer import check, messages
from plainformer.check import CheckFailed


def softmax(x):
    return x.softmax(dim=-1)


def by_sum(x):
    return x / x.sum(dim=-1, keepdim=True)


def halved(x):
    return softmax(x) / 2


CASES = [(torch.tensor([1.0, 2.0, 4.0]),), (torch.tensor([[1.0, 5.0], [3.0, 2.0]]),)]


@pytest.fixture(autouse=True)
def texts(monkeypatch):
    for key in ("by_sum", "also_by_sum", "halved"):
        monkeypatch.setitem(messages.MISTAKES, key, f"This is the mistake {key}.")


def failure(fn, *args, **kwargs) -> CheckFailed:
    with pytest.raises(CheckFailed) as caught:
        fn(*args, **kwargs)
    return caught.value


@pytest.mark.parametrize(
    "answer",
    [
        softmax,
        lambda x: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True),
        lambda x: softmax(x.double()),
        lambda x: softmax(x.requires_grad_()),
    ],
)
def test_right_answers_pass_however_they_are_written(answer):
    check.calls(answer, CASES, softmax, "softmax")


def write_over(x):
    x -= x.max()
    return softmax(x)


def write_over_and_be_wrong(x):
    x -= x.max()
    return halved(x)


def not_written(x):
    raise NotImplementedError


def crash(x):
    return x @ torch.ones(17, 1)


@pytest.mark.parametrize(
    ("answer", "rule", "words"),
    [
        (None, "undefined", "no function"),
        (not_written, "not-written", "raise NotImplementedError"),
        (crash, "crashed", "x @ torch.ones(17, 1)"),
        (lambda x: None, "returned-nothing", "forget to return"),
        (lambda x: "a", "type", "'a' (str)"),
        (lambda x: x.tolist(), "type", "expected a tensor"),
        (lambda x: softmax(x).numpy(), "type", "a numpy array of shape (3,)"),
        (lambda x: x.max(dim=-1), "type", "the pair (values, indices) that torch's max returns"),
        (lambda x: softmax(y), "crashed", "grader does not run the cells that only show"),  # noqa: F821
        (lambda x: rearrange(x, "(a b) -> a b"), "crashed", "Could not infer sizes"),
        (lambda x: x[..., None], "rank", "1 axis (s), shape (3,)"),
        (lambda x: softmax(x)[..., :-1], "shape", "(3,) = (s), got (2,)"),
        (lambda x: softmax(x) > 0.2, "dtype", "float"),
        (lambda x: x / 0, "not-finite", "3 of 3 entries"),
        (write_over, "modified", "argument `x`"),
        (write_over_and_be_wrong, "modified", "argument `x`"),
        (halved, "values", "the first at [0]"),
    ],
)
def test_only_the_first_failing_rung_is_shown(answer, rule, words):
    failed = failure(check.calls, answer, CASES, softmax, "softmax", axes="s")
    assert failed.rule == rule
    assert words in str(failed)
    assert str(failed).startswith("softmax: ")


def test_a_wrong_value_shows_both_rows_and_the_call():
    failed = failure(check.calls, by_sum, CASES, softmax, "softmax")
    lines = str(failed).splitlines()
    assert lines[0] == "softmax: 3 of 3 entries differ, the first at [0]."
    assert lines[1] == "  expected 0.0420101  in  [0.0420101, 0.114195, 0.843795]"
    assert lines[2] == "       got 0.142857  in  [0.142857, 0.285714, 0.571429]"
    assert lines[3] == "  called with [1, 2, 4]  (case 1 of 2)"
    assert lines[4].startswith("  Next: ")


def test_a_mistake_is_named_when_every_case_agrees_with_it():
    failed = failure(check.calls, by_sum, CASES, softmax, "s", unlike={"by_sum": by_sum})
    assert failed.mistake == "by_sum"
    assert str(failed).endswith("This is the mistake by_sum.")


def test_a_mistake_may_be_given_as_results_so_that_no_test_cell_spells_it_out():
    results = [by_sum(*case) for case in CASES]
    failed = failure(check.calls, by_sum, CASES, softmax, "s", unlike={"by_sum": results})
    assert failed.mistake == "by_sum"


def test_no_mistake_is_named_from_one_input():
    failed = failure(check.calls, by_sum, CASES[:1], softmax, "s", unlike={"by_sum": by_sum})
    assert failed.mistake is None


def test_no_mistake_is_named_where_it_is_right_in_all_cases_but_one():
    fixed = torch.ones(1, 4)  # softmax and dividing by the sum agree here
    cases = [(fixed,), CASES[0]]
    failed = failure(check.calls, by_sum, cases, softmax, "s", unlike={"by_sum": by_sum})
    assert failed.mistake is None


def test_no_mistake_is_named_when_two_known_ones_explain_the_answer():
    known = {"by_sum": by_sum, "also_by_sum": lambda x: by_sum(x) + 0}
    assert failure(check.calls, by_sum, CASES, softmax, "s", unlike=known).mistake is None


def test_a_mistake_that_only_explains_the_first_case_is_not_named():
    def sometimes(x):
        return by_sum(x) if x.dim() == 1 else softmax(x) / 3

    known = {"by_sum": by_sum, "halved": halved}
    assert failure(check.calls, sometimes, CASES, softmax, "s", unlike=known).mistake is None


def test_a_mistake_of_another_shape_is_named_too():
    known = {"by_sum": lambda x: by_sum(x)[..., None]}
    wrong = known["by_sum"]
    failed = failure(check.calls, wrong, CASES, softmax, "s", unlike=known)
    assert (failed.rule, failed.mistake) == ("rank", "by_sum")


def test_an_unknown_mistake_is_the_authors_error():
    with pytest.raises(KeyError, match="MISTAKES"):
        check.calls(by_sum, CASES, softmax, "s", unlike={"never heard of": by_sum})


def test_no_mistake_is_named_where_answer_and_mistake_both_stop_with_an_error():
    """The first call is wrong, so it is told; the second has no result to compare."""

    def square_only(matrix):
        return matrix + matrix.mT

    cases = [(torch.ones(2, 2),), (torch.ones(2, 3),)]
    known = {"by_sum": square_only}
    failed = failure(check.calls, square_only, cases, lambda m: 3 * m, "m", unlike=known)
    assert (failed.rule, failed.mistake) == ("values", None)


def test_every_function_gets_inputs_of_its_own():
    def spoiling_reference(x):
        x += 100
        return softmax(x)

    check.calls(softmax, CASES, spoiling_reference, "softmax")
    assert CASES[0][0].tolist() == [1.0, 2.0, 4.0]


def test_keyword_cases():
    check.calls(lambda x, scale: x * scale, [{"x": 2, "scale": 3}], [6], "product")


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (1.00001, 1.0),
        (torch.tensor(3), 3),
        (torch.tensor([2.0, 3.0]), torch.tensor([2, 3])),
        (torch.tensor([2, 3]), torch.tensor([2.0, 3.0])),
        (np.int64(3), 3),
        (3.0, 3),
        (np.float64(2.5), 2.5),
        ((1, [2.0]), [1, (2.0,)]),
        ({"a": torch.ones(2)}, {"a": torch.ones(2)}),
        (float("nan"), float("nan")),
        (torch.tensor([float("inf"), 1]), torch.tensor([float("inf"), 1])),
        (torch.Size([2, 3]), (2, 3)),
        (None, None),
    ],
)
def test_close_accepts(got, want):
    check.close(got, want, "value")


@pytest.mark.parametrize(
    ("got", "want", "rule"),
    [
        (1.001, 1.0, "number"),
        (109482241, 109482240, "number"),  # within any usual rtol, and wrong
        (True, 1, "type"),
        (1, True, "type"),
        ([1, 2], [1, 2, 3], "length"),
        ({"a": 1}, {"b": 1}, "keys"),
        ([1.0, 2.0], torch.ones(2), "type"),
        (torch.tensor([2.5, 3]), torch.tensor([2, 3]), "dtype"),
        (torch.tensor([2, 3]), torch.tensor([2.5, 3]), "dtype"),
        (torch.tensor([1, 0]), torch.tensor([True, False]), "dtype"),
        (np.ones(2), torch.ones(2), "type"),
        (torch.tensor([7, 8]), torch.tensor([7, 9]), "values"),
        (float("nan"), 1.0, "number"),
        ("a", "b", "number"),
    ],
)
def test_close_rejects(got, want, rule):
    assert failure(check.close, got, want, "value").rule == rule


def test_short_rows_of_numbers_are_shown_whole():
    failed = failure(check.equal, (2, 3), (2, 3, 1), "shape")
    assert str(failed).startswith("shape: expected (2, 3, 1), got (2, 3).")
    failed = failure(check.equal, [2, 4], (2, 3), "shape")
    assert str(failed).startswith("shape: expected (2, 3), got (2, 4).")


def test_close_needs_two_results_to_name_a_mistake():
    with pytest.raises(TypeError, match="two results"):
        check.close(1.0, 2.0, "value", unlike={"halved": 1.0})
    failed = failure(check.close, [1.0, 2.0], [2.0, 4.0], "v", unlike={"halved": [1.0, 2.0]})
    assert failed.mistake == "halved"


def test_equal_is_exact():
    check.equal(torch.tensor([True, False]), torch.tensor([True, False]), "mask")
    assert failure(check.equal, 1.0 + 1e-9, 1.0, "number").rule == "number"


def test_shape_names_the_axes():
    check.shape(torch.ones(5, 7), "t s", t=5, s=7)
    failed = failure(check.shape, torch.ones(7, 5), "t s", t=5, s=7, what="scores")
    assert "scores: expected shape (5, 7) = (t, s), got (7, 5)" in str(failed)


def refuse(size):
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    return size


def test_raises():
    check.raises(ValueError, refuse, 0, what="size 0", says="at least 1")
    assert failure(check.raises, ValueError, refuse, 1, what="size 1").rule == "no-error"
    wrong = failure(check.raises, KeyError, refuse, 0, what="size 0")
    assert wrong.rule == "wrong-error"
    silent = failure(check.raises, ValueError, refuse, 0, what="size 0", says="prime")
    assert silent.rule == "error-words"
    assert failure(check.raises, ValueError, not_written, 0, what="w").rule == "not-written"


def test_right_values_can_be_kept_back():
    failed = failure(
        check.calls, by_sum, CASES, softmax, "s", tell=False, unlike={"by_sum": by_sum}
    )
    assert failed.mistake == "by_sum"
    assert "0.142857" in str(failed)
    assert "0.0420101" not in str(failed)
    failed = failure(check.close, 3.0, 4.25, "a number", tell=False)
    assert str(failed).startswith("a number: got 3, and that is not it.")
    assert "4.25" not in str(failed)
    failed = failure(check.close, [1.5, 2.5], [1.5, 2.5, 4.25], "a row", tell=False)
    assert failed.rule == "length"
    assert "4.25" not in str(failed)


def test_the_next_step_after_a_crash_fits_the_error():
    failed = failure(check.calls, lambda x: x or 1, CASES, softmax, "s")
    assert "ask `is None`" in str(failed)


def test_unchanged():
    check.unchanged(softmax, torch.ones(3), what="softmax")
    assert failure(check.unchanged, write_over, torch.ones(3), what="softmax").rule == "modified"


def test_ipython_shows_the_message_without_a_traceback():
    failed = failure(check.calls, by_sum, CASES, softmax, "softmax")
    [shown] = failed._render_traceback_()
    assert shown == f"Not yet. {failed}"


def test_every_rule_can_be_filled():
    for rule, (headline, step) in messages.RULES.items():
        names = re.findall(r"{(\w+)}", headline)
        assert "what" in names, rule
        assert headline.format(**dict.fromkeys(names, "x"))
        assert step[0].isupper(), rule
        assert step.endswith((".", "?")), rule


def test_every_mistake_is_a_sentence():
    for key, text in messages.MISTAKES.items():
        assert text[0].isupper(), key
        assert text.rstrip().endswith("."), key
