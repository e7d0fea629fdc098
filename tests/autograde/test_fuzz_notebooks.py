"""Any file at all is read or refused with a reason; damage in one cell costs no other answer."""

import contextlib
import copy
import io
import itertools
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autograde import archive
from autograde.cell_code import bare
from autograde.extract import Extracted, extract
from autograde.notebook import Unreadable, parse_notebook

HERE = Path("90-example.ipynb")
ANSWERS = {
    "90-double": "def double(x):\n    return 2 * x",
    "90-row-means": "def row_means(x):\n    return x.mean(dim=-1)",
}
bounded = settings(derandomize=True, deadline=None, database=None, max_examples=200)

# NaN, lone surrogates and numbers without an end are no valid JSON, or hardly; Python takes them.
texts = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(), max_size=8),  # surrogates too
    st.sampled_from([*ANSWERS, "90-why", "90-double-by-hand", "code", "raw", "source", "cells"]),
    st.sampled_from(["def (", "\x00", "%%time", "x\\d = '\\d'", "((" * 300, "<<<<<<< HEAD\n"]),
    st.sampled_from([*ANSWERS.values(), "def double(x): raise NotImplementedError"]),
)
plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
documents = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
cells = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": texts | documents,
        "source": texts | st.lists(texts | documents, max_size=4) | documents,
        "input": texts | documents,
        "metadata": documents
        | st.fixed_dictionaries(
            {"nbgrader": documents | st.fixed_dictionaries({"grade_id": texts | documents})},
            optional={"tags": documents},
        ),
    },
)
notebooks = st.fixed_dictionaries(
    {"cells": st.lists(cells | documents, max_size=6) | documents},
    optional={"worksheets": documents, "metadata": documents},
)


def find(data, chapter) -> Extracted | None:
    """What is found in these bytes; None where they are refused. Anything else is a bug."""
    try:
        sent = parse_notebook(data, HERE)
    except Unreadable as error:
        reasons = [str(error), error.for_learner]
    else:
        reasons = []
    if reasons:
        assert all("; " in reason for reason in reasons)  # what is wrong; what to do
        return None
    found = extract(sent, chapter)
    check_promises(found, chapter)
    return found


def check_promises(found, chapter):
    tests = [test for one in chapter.exercises.values() for test in one.tests]
    given_texts = {bare(test.visible_text) for test in tests}
    assert set(found.answers) <= set(chapter.exercises)
    assert set(found.written) <= {cell.id for cell in chapter.written}
    assert not given_texts & {bare(source) for source in found.extra}
    stubs = {bare(one.cell.stub_text) for one in chapter.exercises.values()}
    assert not stubs & {bare(source) for source in found.answers.values()}
    for text in [*found.notes, *found.answers.values(), *found.written.values(), *found.extra]:
        text.encode()
    assert sum(map(len, found.notes)) < 20_000


def as_bytes(document) -> bytes:
    return json.dumps(document).encode("utf-8", errors="surrogatepass")


@bounded
@given(data=st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"\x00{")
@example(b"{" * 5000)
@example(b'{"cells":' * 5000)
@example(b'{"cells": [], "nbformat": ' + b"9" * 5000 + b"}")
@example(b'{"cells": [{"source": "x = 1", "source": null}], "cells": [null]}')
@example(b'{"cells": [{"metadata": {"tags": ' + b"[" * 900 + b"]" * 900 + b"}}]}")
def test_any_bytes(chapter, data):
    find(data, chapter)


@bounded
@given(document=documents | notebooks)
def test_any_json(chapter, document):
    find(as_bytes(document), chapter)


@bounded
@given(spoilt=st.lists(st.tuples(st.integers(0, 399), st.integers(0, 255)), max_size=6))
def test_any_archive(spoilt):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in ("ada/90-example.ipynb", "bob/ü.ipynb"):
            packed.writestr(name, b"{}" * 100)
    data = bytearray(made.getvalue())
    for place, value in spoilt:
        data[place % len(data)] = value
    with contextlib.suppress(archive.BadArchive), archive.opened(io.BytesIO(data), "x") as opened:
        for member in archive.members(opened)[0]:
            assert ".." not in member.parts
            assert len(archive.content(opened, member)) <= archive.LARGEST


# A real notebook, changed anywhere


def nodes(tree):
    """Every (container, key) of a JSON tree."""
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from nodes(tree[key])


def drop(data, tree, key):
    del tree[key]


def rename(data, tree, key):
    if isinstance(tree, dict):
        tree[data.draw(texts)] = tree.pop(key)


def retype(data, tree, key):
    tree[key] = data.draw(documents)


def double(data, tree, key):
    if isinstance(tree, list):
        tree.insert(data.draw(st.integers(0, len(tree))), copy.deepcopy(tree[key]))


def swap(data, tree, key):
    other = data.draw(st.sampled_from(sorted(tree) if isinstance(tree, dict) else range(len(tree))))
    tree[key], tree[other] = tree[other], tree[key]


def mutate(data, notebook):
    places = list(nodes(notebook))
    if not places:
        return
    tree, key = places[data.draw(st.integers(0, len(places) - 1))]
    data.draw(st.sampled_from([drop, rename, retype, double, swap]))(data, tree, key)


@pytest.fixture(scope="module")
def answered(fresh_release):
    """The example as JSON, both exercises answered; module-wide, so only to be copied."""
    document = json.loads(json.dumps(fresh_release))
    for cell in document["cells"]:
        ident = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = ANSWERS.get(ident, cell["source"])
    return document


@bounded
@given(data=st.data())
def test_a_notebook_changed_in_several_places(chapter, answered, data):
    notebook = copy.deepcopy(answered)
    for _ in range(data.draw(st.integers(1, 5))):
        mutate(data, notebook)
    find(as_bytes(notebook), chapter)


@bounded
@given(data=st.data(), exercise=st.sampled_from(sorted(ANSWERS)))
def test_damage_in_one_cell_costs_no_other_answer(chapter, answered, data, exercise):
    notebook = copy.deepcopy(answered)
    mine = next(cell for cell in notebook["cells"] if cell["source"] == ANSWERS[exercise])
    place = data.draw(st.integers(0, len(notebook["cells"]) - 1))
    cell = notebook["cells"][place]
    if cell is mine:
        return
    for _ in range(data.draw(st.integers(1, 4))):
        mutate(data, cell)
    found = find(as_bytes(notebook), chapter)
    asked = exercise.removeprefix("90-").replace("-", "_")
    if asked not in json.dumps(cell):  # else it may hold another, later answer
        assert found.answers[exercise] == ANSWERS[exercise]


@bounded
@given(order=st.permutations(range(30)), labels=st.booleans(), kind=st.booleans())
def test_moving_and_stripping_cells_costs_no_answer(chapter, answered, order, labels, kind):
    notebook = copy.deepcopy(answered)
    some = [place for place in order if place < len(notebook["cells"])]
    notebook["cells"] = [notebook["cells"][place] for place in some]
    for cell in notebook["cells"]:
        cell["metadata"] = cell["metadata"] if labels else {}
        if kind:
            cell["cell_type"] = {"code": "markdown", "markdown": "raw"}[cell["cell_type"]]
    assert find(as_bytes(notebook), chapter).answers == ANSWERS


@bounded
@given(data=st.data())
def test_a_notebook_of_stubs_answers_nothing(chapter, fresh_release, data):
    """However its cells are moved, doubled, dropped, relabelled and retyped."""
    notebook = json.loads(json.dumps(fresh_release))
    labels = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]]
    for cell in notebook["cells"]:
        if data.draw(st.integers(0, 3)) == 0:
            cell["metadata"] = {"nbgrader": {"grade_id": data.draw(st.sampled_from(labels))}}
        if data.draw(st.integers(0, 3)) == 0:
            cell["cell_type"] = data.draw(st.sampled_from(["code", "raw", "markdown"]))
    count = len(notebook["cells"])
    order = data.draw(st.lists(st.integers(0, count - 1), max_size=2 * count))
    notebook["cells"] = [notebook["cells"][place] for place in order]
    assert find(as_bytes(notebook), chapter).answers == {}


def test_no_given_cell_under_any_label_is_an_answer(chapter, fresh_release):
    """As above, but every single case: the text of each cell, each label, each type."""
    notebook = json.loads(json.dumps(fresh_release))
    labels = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]]
    for cell, label, kind in itertools.product(
        notebook["cells"], labels, ["code", "raw", "markdown"]
    ):
        metadata = {"nbgrader": {"grade_id": label}}
        one = {"cell_type": kind, "metadata": metadata, "source": cell["source"]}
        found = find(as_bytes({"cells": [one]}), chapter)
        assert (found.answers, found.extra) == ({}, ()), (label, kind, cell["source"])
