"""Answers that are written alike: copies are found, honest people are not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograde.audit import load_answers
from autograde.chapters import Course
from autograde.grade import grade_chapter
from autograde.similarity import CAUTION, LONG, SEVERAL, SMALL, normal, similarity
from autograde.source import load

SLUG = "02-attention"
ORIGINAL = '''
def attend(query, keys):
    """My own idea."""
    total = 0.0  # so far
    def part(number, key):
        return number * (query @ key)
    for number, key in enumerate(keys):
        total += part(number, key)
    return total
'''
RENAMED = """
def attend(q: "a vector", ks) -> float:
    s: float = 0.0

    def one(i, k):
        return (i * (q @ k))
    for i, k in enumerate(ks):

        s += one(i, k)
    return s
"""
OTHERWISE = """
def attend(query, keys):
    return sum(number * (query @ key) for number, key in enumerate(keys))
"""


def test_names_comments_and_layout_do_not_count():
    assert normal(ORIGINAL) == normal(RENAMED)
    assert normal(ORIGINAL) != normal(OTHERWISE)


@pytest.mark.parametrize(
    "other",
    [
        ORIGINAL.replace("0.0", "1.0"),
        ORIGINAL.replace("number * (query @ key)", "number * (key @ query)"),
        ORIGINAL.replace("return total", "return number"),
        ORIGINAL.replace("enumerate", "reversed"),
    ],
)
def test_what_the_code_does_counts(other):
    assert normal(ORIGINAL) != normal(other)


def test_the_nodes_of_a_tree_are_counted():
    """Module, Assign, Name, Store, BinOp, Constant, Add, Constant."""
    assert normal("x = 1 + 2")[1] == 8


@given(st.text(st.characters(codec="utf-8")))
def test_no_text_is_too_odd(text):
    normal(text)
    normal(f"def f({text}):\n    {text}")


@pytest.mark.parametrize("text", ["(" * 300 + ")" * 300, "x = " + "-" * 20000 + "1", "a\0b"])
def test_what_cannot_be_read_is_left_out_and_said(text):
    found = similarity(SLUG, {"ada": {"02-softmax": text}}, {})
    assert found.left_out == (("ada", "02-softmax"),)
    assert "left out: ada, 02-softmax" in str(found)


@pytest.fixture(scope="module")
def attention():
    return load(SLUG)


@pytest.fixture(scope="module")
def right():
    return load_answers(SLUG, Course())[0]


@pytest.fixture(scope="module")
def known(attention, right):
    return {
        ident: [one.cell.stub_text, one.cell.solution_text, *right.get(ident, {}).values()]
        for ident, one in attention.exercises.items()
    }


def test_people_who_write_what_the_course_knows_are_not_listed(attention, right, known):
    answers = {
        f"student{n}{copy}": {
            one: [*texts.values()][n % len(texts)] for one, texts in right.items()
        }
        for n in range(max(map(len, right.values())))
        for copy in "ab"
    }
    stubs = {one.id: one.cell.stub_text for one in attention.exercises.values()}
    answers |= {"blank": stubs, "blank too": stubs}
    found = similarity(SLUG, answers, known)
    assert found.pairs == found.left_out == ()


def of_their_own(attention, person):
    """Right answers that nobody else writes: the course's own, with a turn of this person's."""
    return {
        one.id: one.cell.solution_text + f"\n\nassert {person} * sum(range({person})) >= 0"
        for one in attention.exercises.values()
    }


def test_a_copy_is_found_among_honest_work(attention, known):
    answers = {f"student{n:02}": of_their_own(attention, n) for n in range(10, 30)}
    answers["thief"] = {
        one: code.replace("powers", "zzz") + "\n# all mine"
        for one, code in answers["student17"].items()
    }
    (found,) = similarity(SLUG, answers, known).pairs
    assert found.students == ("student17", "thief")
    assert set(found.alike) == set(attention.exercises)


def of_size(nodes):
    """Code with so many nodes: 1 for the module, 4 each for `x = 0`, 3 for a lone name."""
    lines = ["x = 0"] * ((nodes - 1) // 4)
    rest = (nodes - 1) % 4
    lines += {0: [], 1: ["pass"], 2: ["pass", "pass"], 3: ["x"]}[rest]
    code = "\n".join(lines)
    assert normal(code)[1] == nodes
    return code


@pytest.mark.parametrize(
    ("sizes", "listed"),
    [
        ([SMALL - 1] * 9, False),
        ([SMALL] * (SEVERAL - 1), False),
        ([SMALL] * SEVERAL, True),
        ([LONG - 1], False),
        ([LONG], True),
    ],
)
def test_a_pair_is_listed_for_several_answers_or_a_long_one(sizes, listed):
    answers = {str(n): of_size(size) for n, size in enumerate(sizes)}
    found = similarity(SLUG, {"ada": answers, "bob": answers, "cyd": {"0": "y = 1"}}, {})
    assert [pair.students for pair in found.pairs] == [("ada", "bob")] * listed


def test_the_command_lists_them_and_says_what_it_does_not_prove(
    class_of, filled, course, engine, command, capsys
):
    lines = "".join(f"    y{n} = x + {n}\n" for n in range(40))
    long = f"def double(x):\n{lines}    return 2 * x"
    sent = {"ada": filled(double=long), "bob": filled(double=long.replace("y", "z"))}
    folder = class_of(**sent, cyd=filled(double="def double(x)"), dan=filled())
    grade_chapter(folder, "90-example", course=course, engine=engine)
    options = ("report", "90", "--class-dir", folder.root, "--similarity")
    assert command(*options) == 0
    said = capsys.readouterr().out
    assert "ada and bob: 90-double (" in said
    assert "left out: cyd, 90-double: it is not Python" in said
    assert CAUTION in said
    assert "dan" not in said
    assert command(*options, "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)["chapters"]
    assert told["pairs"][0]["students"] == ["ada", "bob"]
