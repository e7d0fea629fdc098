"""The learner's check: the same verdicts as the grader's for what is visible."""

import json
from pathlib import Path

import nbformat
import pytest

from autograde import cli
from autograde.build import student_notebook
from autograde.chapters import Course
from autograde.check import check_notebook
from autograde.run import Engine
from autograde.source import load

EXAMPLE = Course(Path(__file__).parent / "data")


@pytest.fixture(scope="module")
def released():
    return student_notebook(load("90-example", EXAMPLE.root))


@pytest.fixture
def rows(released, tmp_path):
    def check(**answers: str):
        notebook = nbformat.from_dict(json.loads(json.dumps(released)))
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            cell.source = answers.get(name, cell.source)
        path = tmp_path / "90-example.ipynb"
        nbformat.write(notebook, path)
        with Engine() as engine:
            return check_notebook(path, "90-example", engine, EXAMPLE)[0]

    return check


def test_an_untouched_notebook_has_nothing_written(rows):
    assert [row.state for row in rows()] == ["not written", "not written"]


def test_each_exercise_has_its_own_line(rows):
    right, wrong = "def double(x):\n    return 2 * x", "def row_means(x):\n    return x.mean(0)"
    double, means = rows(**{"90-double": right, "90-row-means": wrong})
    assert (double.state, double.message) == ("pass", "")
    assert means.state == "mend"
    assert "entries differ" in means.message


def test_hidden_parts_are_not_run(rows):
    table = "def double(x):\n    return {3: 6, 5: 10}[x]"
    assert rows(**{"90-double": table})[0].state == "pass"


def test_the_command_says_what_it_cannot_find(capsys):
    assert cli.main(["check", "no-such-notebook.ipynb"]) == 2
    assert "there is no chapter" in capsys.readouterr().err
