"""The audit finds what it promises to find, on a chapter with planted faults."""

from pathlib import Path

import pytest

from autograde import cli
from autograde.audit import audit, visible_share
from autograde.chapters import Course
from autograde.run import Engine

EXAMPLE = Path(__file__).parent / "data"

ANSWERS = """
RIGHT = {
    "90-double": {"sum": "def double(x):\\n    return x + x", "shift": "double = lambda x: x * 2"},
    "90-row-means": {
        "sum": "def row_means(x):\\n    return x.sum(-1) / x.shape[-1]",
        "loop": "def row_means(x):\\n    return torch.stack([row.mean() for row in x])",
    },
}
WRONG = {
    "90-double": {
        "same": ("def double(x):\\n    return x", "expected 6"),
        "square": ("def double(x):\\n    return x * x", "expected 6"),
        "table": ("def double(x):\\n    return {3: 6, 5: 10}[x]", "KeyError"),
    },
    "90-row-means": {
        "columns": ("def row_means(x):\\n    return x.mean(0)", "differ"),
        "keepdim": ("def row_means(x):\\n    return x.mean(-1, keepdim=True)", "1 axis"),
        "all": ("def row_means(x):\\n    return x.mean()", "1 axis"),
    },
}
"""


@pytest.fixture(scope="module")
def engine():
    with Engine() as running:
        yield running


@pytest.fixture
def course(tmp_path):
    def write(answers: str, **changes: str) -> Course:
        source = (EXAMPLE / "solutions" / "90-example.md").read_text()
        for old, new in changes.values():
            assert old in source
            source = source.replace(old, new)
        (tmp_path / "solutions").mkdir()
        (tmp_path / "solutions" / "90-example.md").write_text(source)
        (tmp_path / "tests" / "answers").mkdir(parents=True)
        (tmp_path / "tests" / "answers" / "90_example.py").write_text(answers)
        return Course(tmp_path)

    return write


def problems(findings) -> str:
    return "\n".join(problem for finding in findings for problem in finding.problems)


def test_a_sound_chapter_has_nothing_to_mend(engine, course):
    findings = audit("90-example", engine, course(ANSWERS))
    assert problems(findings) == ""
    double, means = findings
    assert (double.right, double.wrong, double.named, double.seen_by_visible) == (3, 3, 3, 2)
    assert visible_share(findings) == pytest.approx(5 / 6)
    assert means.trivial_points == []


def test_a_right_answer_that_fails_is_reported(engine, course):
    answers = ANSWERS.replace("return x + x", "return float(x + x) + 1")
    assert "right answer rejected: sum" in problems(audit("90-example", engine, course(answers)))


def test_a_wrong_answer_that_passes_is_reported(engine, course):
    answers = ANSWERS.replace("return x * x", "return x + x")
    assert "wrong answer accepted: square" in problems(audit("90-example", engine, course(answers)))


def test_words_that_the_learner_does_not_see_are_reported(engine, course):
    answers = ANSWERS.replace('"KeyError"', '"never shown"')
    assert "expected words not shown: table" in problems(
        audit("90-example", engine, course(answers))
    )


def test_a_test_that_a_thoughtless_answer_passes_is_reported(engine, course):
    weak = ('check.equal(double(3), 6, "double(3)")', "assert double(3) is not None")
    found = problems(audit("90-example", engine, course(ANSWERS, weak=weak)))
    assert "trivial answer gets points: zeros, 90-double-by-hand" in found


def test_too_few_answers_are_reported(engine, course):
    answers = ANSWERS.replace('"shift": "double = lambda x: x * 2"', "")
    assert "1 right, at least 2 are needed" in problems(
        audit("90-example", engine, course(answers))
    )


def test_answers_to_an_unknown_exercise_are_an_error(engine, course):
    with pytest.raises(ValueError, match="90-other"):
        audit("90-example", engine, course(ANSWERS.replace("90-row-means", "90-other")))


def test_a_setup_that_fails_is_reported_once(course, monkeypatch, capsys):
    broken = ("from plainformer import check", "from plainformer import no_such_name")
    made = course(ANSWERS, broken=broken)
    (made.root / "_toc.yml").write_text(
        "parts: [{chapters: [{file: chapters/90-example}]}]", encoding="utf-8"
    )
    monkeypatch.setattr("autograde.audit.Course", lambda: made)
    assert cli.main(["audit", "90"]) == 1
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("MEND")]
    assert len(told) == 1
    assert "90-example: the chapter's own setup cell stopped with ImportError" in told[0]
