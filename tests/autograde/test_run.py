"""The engine on real processes: verdicts, accidents, limits, and that one hurts no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from autograde.chapters import Course
from autograde.lint import forbidden
from autograde.run import Engine, Limits, SetupFailed, need_setup
from autograde.source import load

EXAMPLE = Path(__file__).parent / "data"
RIGHT = "def double(x):\n    return 2 * x"


@pytest.fixture(scope="module")
def chapter():
    return load("90-example", Course(EXAMPLE))


@pytest.fixture(scope="module")
def engine():
    with Engine(Limits(cpu=1, wall=60, memory=1.0)) as running:
        yield running


@pytest.fixture
def run(engine, chapter):
    def judge(source: str, **options):
        verdicts = engine.run(chapter, {"90-double": source}, exercises=["90-double"], **options)
        return list(verdicts.values())

    return judge


def states(verdicts) -> list[str]:
    return [verdict.state for verdict in verdicts]


@pytest.mark.parametrize(
    "source",
    [
        RIGHT,
        "double = lambda x: x + x",
        "import sys, warnings\n" + RIGHT + "\nprint('to stderr', file=sys.stderr)",
        "%matplotlib inline\n!ls\n" + RIGHT,
        RIGHT + "\ndouble('a', 'b')  # a scratch line that stops the cell, after the answer",
        RIGHT + "\nNone + 1",
    ],
)
def test_right_answers_get_all_points(run, source):
    assert states(run(source)) == ["pass", "pass"]
    assert sum(verdict.score for verdict in run(source)) == 3


@pytest.mark.parametrize(
    ("source", "state", "words"),
    [
        ("def double(x):\n    return x", "fail", "expected 6, got 3"),
        ("def double(x):\n    return None", "fail", "forget to return"),
        ("def double(x):\n    raise NotImplementedError", "not written", ""),
        ("def double(x)\n    return 2 * x", "error", "SyntaxError"),
        ("def other(x):\n    return 2 * x", "error", "'double' is not defined"),
        ("raise RuntimeError('by the learner')", "error", "by the learner"),
        ("import sys\nsys.exit(0)", "error", "SystemExit"),
        ("def double(x):\n    raise SystemExit(0)", "error", "SystemExit"),
        ("def double(x):\n    raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
        ("import os\nos._exit(0)", "killed", "ended the whole process"),
        ("import os\ndef double(x):\n    os.kill(os.getpid(), 9)", "killed", "SIGKILL"),
        ("def double(x):\n    while True: pass", "timeout", "endless loop"),
        ("while True: pass", "timeout", "endless loop"),
        ("def double(x):\n    return bytearray(5 * 2**30)", "out of memory", "MemoryError"),
        ("def double(x):\n    return torch.zeros(2**31)", "out of memory", "allocate memory"),
        ("held = bytearray(5 * 2**30)", "out of memory", "MemoryError"),
    ],
)
def test_wrong_answers_and_accidents_are_told_apart(run, source, state, words):
    verdicts = run(source)
    assert set(states(verdicts)) == {state}
    assert all(verdict.score == 0 for verdict in verdicts)
    assert words in verdicts[0].message


def test_an_accident_in_one_test_leaves_the_others_their_points(run):
    source = "import os\ndef double(x):\n    return 2 * x if x == 3 else os._exit(1)"
    assert states(run(source)) == ["pass", "killed"]
    source = "import os\ndef double(x):\n    return 2 * x if x != 3 else os._exit(1)"
    assert states(run(source)) == ["killed", "pass"]


@pytest.mark.parametrize(
    ("beyond_ten", "state"),
    [
        ("0", "fail"),
        ("1 / 0", "error"),
        ("__import__('os')._exit(0)", "killed"),
        ("[None for _ in iter(int, 1)]", "timeout"),
        ("bytearray(5 * 2**30)", "out of memory"),
    ],
)
def test_a_verdict_says_whether_the_visible_or_the_hidden_part_failed(run, beyond_ten, state):
    by_hand, general = run(f"def double(x):\n    return 2 * x if x < 10 else {beyond_ten}")
    assert (by_hand.part, general.state, general.part) == (None, state, "hidden")
    by_hand, general = run(f"def double(x):\n    return 2 * x if x > 10 else {beyond_ten}")
    assert {(one.state, one.part) for one in (by_hand, general)} == {(state, "visible")}


@pytest.mark.parametrize(
    "source", ["def double(x)\n", "while True: pass", "import os\nos._exit(0)", "None.x"]
)
def test_what_the_answer_did_before_any_test_is_no_part_of_one(run, source):
    assert {verdict.part for verdict in run(source)} == {"before"}


def test_only_visible_parts_are_run_when_asked(run):
    source = "def double(x):\n    return {3: 6, 5: 10}[x]"
    assert states(run(source, visible_only=True)) == ["pass", "pass"]
    assert states(run(source)) == ["pass", "error"]


def test_helper_cells_are_run_first_and_forgiven_when_broken(run):
    source = "def double(x):\n    return twice(x)"
    extra = ["def twice(x):\n    return 2 * x", "None + 1"]
    assert states(run(source, extra=extra)) == ["pass", "pass"]


def test_a_missing_answer_is_the_stub(engine, chapter):
    verdicts = engine.run(chapter, {})
    assert set(states(verdicts.values())) == {"not written"}


def test_exercises_do_not_see_each_other(engine, chapter):
    answers = {
        "90-double": RIGHT + "\ntorch.Tensor.mean = None",
        "90-row-means": "def row_means(x):\n    return x.mean(-1)",
    }
    assert set(states(engine.run(chapter, answers).values())) == {"pass"}


def test_random_numbers_are_the_same_in_every_run(run):
    source = "def double(x):\n    return torch.rand(1).item()"
    assert [v.message for v in run(source)] == [v.message for v in run(source)]


def test_hanging_exercises_are_counted_and_the_rest_is_not_tried(engine, chapter):
    with Engine(Limits(wall=1, timeouts=1)) as impatient:
        sleeps = {"90-double": "import time\ndef double(x):\n    time.sleep(99)"}
        verdicts = impatient.run(chapter, sleeps)
    assert set(states(verdicts.values())) == {"timeout"}
    assert "did not come back" in verdicts["90-double-by-hand"].message
    assert "not tried" in verdicts["90-row-means-by-hand"].message


def test_a_helper_that_exits_costs_nothing(run):
    assert states(run(RIGHT, extra=["import sys\nsys.exit(1)"])) == ["pass", "pass"]


def test_no_line_of_a_hidden_test_is_quoted(run):
    for source in ("def double(x):\n    return Mute()\nclass Mute: __eq__ = None", "double = 7"):
        assert not any("canary" in verdict.message for verdict in run(source))


def test_a_dead_worker_is_replaced(engine, chapter):
    engine._process.kill()
    engine._process.wait()
    assert set(states(engine.run(chapter, {"90-double": RIGHT}).values())) >= {"pass"}


def test_what_an_exercise_forbids_is_met_also_when_it_is_called_in_disguise(engine, chapter):
    double = chapter.exercises["90-double"]
    forbids = replace(double, forbid=("softmax", "torch.cumsum"))
    other = replace(chapter, exercises={"90-double": forbids})
    for name in ("softmax", "cumsum"):
        disguised = f"double = lambda x: getattr(torch, '{name[:3]}' + '{name[3:]}')(x) * 0 + 2 * x"
        for verdict in engine.run(other, {"90-double": disguised}).values():
            assert verdict.score == 0
            assert f"{name}, which this exercise asks you to do without" in verdict.message


def test_a_cell_marked_inproc_is_run_beside_the_answer(engine, chapter):
    """There a test sees the function itself, which `inspect` can read."""
    first, *_ = chapter.exercises["90-double"].tests
    text = "import inspect\nassert 'x + x' in inspect.getsource(double), 'no sum'"
    inside = replace(first, text=text, header={**first.header, "judge": "inproc"})
    split = replace(first, text=text)
    for test, state in [(inside, "pass"), (split, "error")]:
        exercise = replace(chapter.exercises["90-double"], tests=(test,))
        other = replace(chapter, exercises={"90-double": exercise})
        (verdict,) = engine.run(other, {"90-double": "def double(x):\n    return x + x"}).values()
        assert verdict.state == state
    (verdict,) = engine.run(
        replace(chapter, exercises={"90-double": replace(exercise, tests=(inside,))}),
        {"90-double": RIGHT},
    ).values()
    assert (verdict.state, verdict.message) == ("fail", "no sum")


def test_an_answer_cannot_foresee_the_random_numbers_of_a_test(engine, chapter):
    """Both sides are seeded, each with words of its own; only the judge's are secret."""
    text = "check.equal(double(3), torch.rand(1).item(), 'the same number')"
    test = replace(chapter.exercises["90-double"].tests[0], text=text)
    exercise = replace(chapter.exercises["90-double"], tests=(test,))
    other = replace(chapter, exercises={"90-double": exercise})
    answer = {"90-double": "def double(x):\n    return torch.rand(1).item()"}
    assert states(engine.run(other, answer).values()) == ["fail"]


def test_a_module_that_the_setup_needs_is_imported_once_for_all(engine, chapter):
    setup = replace(chapter.setup[0], text="import torch, fractions\nfrom plainformer import check")
    other = replace(chapter, setup=(setup,))
    assert set(states(engine.run(other, {"90-double": RIGHT}).values())) >= {"pass"}
    assert "fractions" in engine._warm


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (
            "from plainformer.mistakes import no_such_name",
            "stopped with ImportError: cannot import",
        ),
        ("import os\nos._exit(3)", "ended the whole process (exit status 3)"),
        ("while True: pass", "ran over its limit of processor time"),
    ],
)
def test_a_setup_that_fails_is_never_the_answers_fault(engine, chapter, setup, words):
    broken = replace(chapter, setup=(replace(chapter.setup[0], text=setup),))
    verdicts = engine.run(broken, {"90-double": RIGHT}, exercises=["90-double"])
    assert states(verdicts.values()) == ["error", "error"]
    with pytest.raises(SetupFailed) as failed:
        need_setup(verdicts.values())
    assert str(failed.value).startswith(f"the chapter's own setup cell {words}")
    assert str(failed.value).endswith("; run `python -m autograde doctor`")


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        ("def f(x):\n    return torch.softmax(x, -1)", ["softmax", "torch.softmax"]),
        ("def f(x):\n    return x.softmax(-1)", ["softmax"]),
        ("from torch import softmax as s", ["softmax", "torch.softmax"]),
        ("def f(x):\n    return x  # softmax", []),
        ("def f(x):\n    softmax = x.exp()\n    return softmax / softmax.sum()", []),
        ("def softmax(x):\n    return softmax(x[1:])", []),
        ("def f(x):\n    return softmax(x)", ["softmax"]),
        ("def f(x:", []),
    ],
)
def test_forbidden_names_are_found_in_code_only(answer, used):
    assert forbidden(answer, ("softmax", "torch.softmax")) == used


def test_a_forbidden_name_in_a_helper_counts_only_where_the_answer_leads_to_it():
    helpers = ["def h(x):\n    return g(x)", "def g(x):\n    return x.softmax(-1)", "def h(:"]
    assert forbidden("def f(x):\n    return h(x)", ("softmax",), helpers) == ["softmax"]
    assert forbidden("def f(x):\n    return x", ("softmax",), helpers) == []
