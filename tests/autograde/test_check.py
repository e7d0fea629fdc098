"""The learner's check: the same verdicts as the grader's for what is visible."""

import json
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from autograde.chapters import ROOT
from autograde.check import NoNotebook, chapter_of, check_notebook, find
from autograde.intake import read_notebook
from autograde.run import Engine

SLUG = "90-example"
RIGHT = {
    "double": "def double(x):\n    return 2 * x",
    "row_means": "def row_means(x):\n    return x.mean(-1)",
}


@pytest.fixture(scope="module")
def running():
    with Engine() as engine:
        yield engine


@pytest.fixture
def save(tmp_path):
    """Write a notebook to a file of this name."""

    def to(notebook, name=f"{SLUG}.ipynb"):
        path = tmp_path / name
        path.write_text(notebook if isinstance(notebook, str) else json.dumps(notebook))
        return path

    return to


@pytest.fixture
def rows(filled, save, running, course):
    def check(**answers: str):
        sent = read_notebook(save(filled(**answers)))
        return check_notebook(sent, SLUG, running, course).rows

    return check


def test_an_untouched_notebook_has_nothing_written(rows):
    assert [row.state for row in rows()] == ["not written", "not written"]


def test_each_exercise_has_its_own_line(rows):
    double, means = rows(
        double=RIGHT["double"], row_means="def row_means(x):\n    return x.mean(0)"
    )
    assert (double.state, double.message) == ("pass", "")
    assert means.state == "mend"
    assert "entries differ" in means.message


def test_hidden_parts_are_not_run(rows):
    assert rows(double="def double(x):\n    return {3: 6, 5: 10}[x]")[0].state == "pass"


# Which notebook, which chapter


@pytest.mark.parametrize("name", ["no-such-notebook.ipynb", "nowhere/90-example.ipynb"])
def test_a_file_that_is_not_there_is_said_not_to_exist(command, capsys, name):
    assert command("check", name) == 2
    assert f"the file {name} does not exist" in capsys.readouterr().err


def test_a_mistyped_chapter_is_no_chapter(command, capsys):
    assert command("check", "no-such-chapter") == 2
    assert "there is no chapter 'no-such-chapter'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["90", "090", SLUG])
def test_a_chapter_stands_for_its_own_notebook(course, name):
    with pytest.raises(NoNotebook, match=r"chapters/90-example\.ipynb does not exist"):
        find(name, course)  # the example has no chapters/: this is where it was looked for


@pytest.mark.parametrize("name", ["90-example (1).ipynb", "homework.ipynb", "02 again.ipynb"])
def test_a_renamed_file_is_known_by_its_cells(filled, save, course, name):
    assert chapter_of(read_notebook(save(filled(), name)), course) == SLUG


def test_without_labels_the_number_in_the_name_counts(filled, save, course):
    notebook = filled()
    for cell in notebook.cells:
        cell.metadata = {}
    path = save(notebook, "90-example (1).ipynb")
    assert chapter_of(read_notebook(path), course) == SLUG


def test_a_notebook_of_no_known_chapter_is_said_to_be_one(save, command, capsys):
    path = save({"cells": []}, "homework.ipynb")
    assert command("check", path) == 2
    assert "of no chapter that is known here" in capsys.readouterr().err


# What is printed


@pytest.mark.parametrize(("why", "state"), [({}, "still empty"), ({"why": "So."}, "filled in")])
def test_the_written_answer_is_counted_too(filled, save, command, capsys, why, state):
    path = save(filled(**RIGHT, **why), "90-example (1).ipynb")
    assert command("check", path) == 0
    said = capsys.readouterr().out
    assert "note: 90-example (1).ipynb was checked as chapter 90-example" in said
    assert "2 of 2 exercises pass" in said
    assert f"1 written answer: {state}; a person reads it" in said


def test_a_broken_file_gets_advice_for_its_owner(save, command, capsys):
    assert command("check", save('{"cells": [')) == 1
    said = capsys.readouterr().err
    assert "not valid JSON" in said
    assert "paste your answers into a fresh copy" in said
    assert "ask for it" not in said


def installed_without_extras() -> set[str]:
    """The packages that `pip install .` brings, by following the requirements from ours on."""
    found, waiting = set(), ["plainformer"]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        for text in metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def test_the_learners_small_environment_is_enough():
    small = installed_without_extras()
    assert {"torch", "nbgrader", "jupytext"} <= small
    assert not {"jupyter-book", "transformers", "pytest"} & small
    missing = {
        module
        for module, packages in metadata.packages_distributions().items()
        if not {canonicalize_name(package) for package in packages} & small
    }
    code = f"import sys; sys.modules |= dict.fromkeys({sorted(missing)}); import autograde.cli; "
    run = subprocess.run(
        [sys.executable, "-c", code + "sys.exit(autograde.cli.main(['check', '02']))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stderr  # nothing is written yet
    assert "02-softmax" in run.stdout
