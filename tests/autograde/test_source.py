"""The source format: what is read from it, and which slips are errors with advice."""

import textwrap

import pytest

from autograde.chapters import Course
from autograde.source import load
from autograde.source_cells import Cell, SourceError, cut
from autograde.syntax import defined_names, used_names

FRONT = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A chapter
"""

EXERCISE = """
```{code-cell}
---
role: exercise
exercise: 90-double
tier: core
title: Double
minutes: 2
---
def double(x):
    '''Twice x.'''
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION
```
"""

TEST = '''
```{code-cell}
---
role: test
test: 90-double-by-hand
points: 1
---
"""By hand."""
check.equal(double(3), 6, "double")
### BEGIN HIDDEN TESTS
check.equal(double(4), 8, "double")
### END HIDDEN TESTS
```
'''

HINT = """
+++ {"role": "hint", "exercise": "90-double", "hint": 1}

Add it to itself.
"""


@pytest.fixture
def chapter(tmp_path):
    """Write a chapter from parts and load it."""

    def write(*parts: str):
        folder = tmp_path / "solutions"
        folder.mkdir(exist_ok=True)
        (folder / "90-example.md").write_text(FRONT + "".join(parts))
        return load("90-example", Course(tmp_path))

    return write


def test_an_exercise_gathers_its_tests_and_hints(chapter):
    loaded = chapter(EXERCISE, TEST, HINT)
    exercise = loaded.exercises["90-double"]
    assert [test.id for test in exercise.tests] == ["90-double-by-hand"]
    assert [hint.text for hint in exercise.hints] == ["Add it to itself."]
    assert exercise.points == 1
    assert exercise.defines == {"double"}
    assert loaded.title == "A chapter"


def test_a_test_belongs_to_the_longest_exercise_id_it_continues(chapter):
    longer = EXERCISE.replace("90-double", "90-double-it").replace("def double", "def double_it")
    longer_test = TEST.replace("90-double-by-hand", "90-double-it-by-hand")
    loaded = chapter(EXERCISE, TEST, longer, longer_test)
    assert [t.id for t in loaded.exercises["90-double"].tests] == ["90-double-by-hand"]
    assert [t.id for t in loaded.exercises["90-double-it"].tests] == ["90-double-it-by-hand"]


def test_three_readers_see_three_texts(chapter):
    loaded = chapter(EXERCISE, TEST)
    exercise = loaded.exercises["90-double"]
    assert exercise.cell.solution_text.endswith("    return 2 * x")
    stub = exercise.cell.stub_text
    assert stub.endswith("    raise NotImplementedError  # YOUR CODE HERE")
    assert "double(4)" in exercise.tests[0].solution_text
    assert "double(4)" not in exercise.tests[0].visible_text
    assert "###" not in exercise.tests[0].solution_text


DEMO = "\n```{code-cell}\n%s\n```\n"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([EXERCISE.replace("tier: core", "teir: core"), TEST], "unknown header keys ['teir']"),
        ([EXERCISE.replace("tier: core", "tier: hard"), TEST], "needs `tier:`"),
        ([EXERCISE.replace("minutes: 2\n", ""), TEST], "needs `minutes:`"),
        ([EXERCISE, TEST.replace("points: 1\n", "")], "needs points above 0"),
        ([EXERCISE], "has no test"),
        ([EXERCISE, TEST, TEST], "used twice"),
        ([EXERCISE, TEST.replace("90-double-by", "90-triple-by")], "has no test"),
        ([EXERCISE, TEST, TEST.replace("90-double-by", "90-triple-by")], "continues no exercise"),
        ([EXERCISE, TEST.replace('"""By hand."""\n', "")], "starts with a docstring"),
        ([EXERCISE.replace("### BEGIN SOLUTION", "pass"), TEST], "needs a ### BEGIN SOLUTION"),
        ([EXERCISE, TEST.replace("points: 1", "points: 1\njudge: inproc")], "can hide nothing"),
        ([EXERCISE, TEST.replace("points: 1", "points: 1\njudge: outside")], "split or inproc"),
        ([EXERCISE.replace("minutes: 2", "minutes: 2\njudge: split"), TEST], "on a test cell"),
        ([EXERCISE.replace("90-double", "90.double"), TEST], "letters, digits, hyphens"),
        ([EXERCISE.replace("role: exercise", "role: exercice"), TEST], "one of"),
        ([EXERCISE, TEST, DEMO % "double = 3"], "defines double"),
        ([EXERCISE, TEST, DEMO % "check = 3"], "defines check"),
        ([EXERCISE, TEST, DEMO % "print(double(3))"], "which a student defines"),
    ],
)
def test_a_slip_in_the_source_is_an_error_with_advice(chapter, parts, words):
    with pytest.raises(SourceError) as caught:
        chapter(*parts)
    assert words in str(caught.value)


def test_a_demo_may_share_names_that_are_local_elsewhere(chapter):
    loaded = chapter(EXERCISE, TEST, DEMO % "x = 3\nprint(x)")
    assert loaded.cells[-1].role == "demo"


def test_a_missing_source_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(SourceError, match=r"90-missing\.md does not exist"):
        load("90-missing", Course(tmp_path))


def test_names_that_a_cell_binds_and_reads():
    code = textwrap.dedent("""
        import numpy as np
        from torch import nn
        %matplotlib inline
        a, (b, c) = 1, (2, 3)
        def f(x):
            local = x + outside
            return [y for y in local]
        class K: pass
        for i in range(3): pass
    """)
    assert defined_names(code) == {"np", "nn", "a", "b", "c", "f", "K", "i"}
    assert {"outside", "range"} <= used_names(code)
    assert not {"x", "local", "y"} & used_names(code)


def test_a_region_is_cut_at_its_own_indentation():
    text = "def f():\n    ### BEGIN SOLUTION\n    a\n    b\n    ### END SOLUTION\nend"
    assert cut(text, ("### BEGIN SOLUTION", "### END SOLUTION"), "stub") == (
        "def f():\n    stub\nend"
    )


BEGIN, END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"


@pytest.mark.parametrize(
    ("lines", "visible"),
    [
        (["a = 1", "b = 2"], None),
        (["a = 1", "b = 2", BEGIN, "c = 3", END], 2),
        (["a = [", "  1,", "]", "", BEGIN, "c = 3", END, "d = 4"], 3),
        ([BEGIN, "c = 3", END, "d = 4"], 0),
        (["a = 1", "b = [", "  1,", "  " + BEGIN, "  2,", "  " + END, "]", "f(b)"], 1),
        (["%magic", "a b", BEGIN, "c = 3", END], 0),
    ],
    ids=["nothing hidden", "the end", "in the middle", "all", "within a statement", "no Python"],
)
def test_lines_that_run_before_anything_hidden(lines, visible):
    cell = Cell("code", "\n".join(lines), "test", "90-double-x", {}, 1)
    assert cell.visible_lines == visible
