"""Notebooks that attack: one class, graded in one run; each gets what it deserves.

Honest students stand before, between and behind them: they must get all their points.
"""

import copy
import json
import os
import shutil
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_output

from autograde.feedback import write_feedback
from autograde.grade import grade_chapter
from autograde.plan import ClassFolder
from autograde.record import scores
from autograde.run import Engine, Limits

SLUG = "90-example"
DOUBLE, MEANS = "def double(x):\n    return 2 * x", "def row_means(x):\n    return x.mean(-1)"
WRONG = "def double(x):\n    return x"
HONEST = ("aaron", "maria", "zoe")
ATTACKS = {}  # student -> (a function of a notebook with a wrong `double`, the points it deserves)
UNREADABLE = None  # no points and no zero: listed with a reason


def deserves(points):
    """The points out of 6; a right `row_means` is in every notebook and is worth 3 of them."""

    def enter(function):
        ATTACKS[function.__name__.replace("_", "-")] = function, points
        return function

    return enter


def place_of(notebook, ident):
    graded = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    return graded.index(ident)


def cell_of(notebook, ident):
    return notebook.cells[place_of(notebook, ident)]


def graded_cells(notebook):
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]


@deserves(3)
def skips_the_tests(notebook):
    for cell in graded_cells(notebook):
        cell.metadata.tags = ["skip-execution", "remove-cell"]


@deserves(3)
def a_hundred_points_a_test(notebook):
    for cell in graded_cells(notebook):
        cell.metadata.nbgrader.points = 100


@deserves(3)
def points_that_are_text(notebook):
    for points, cell in zip(["all", None, -5, 1e400, [], {}], graded_cells(notebook), strict=False):
        cell.metadata.nbgrader.points = points


@deserves(3)
def agreeing_tests(notebook):
    for cell in graded_cells(notebook):
        cell.source = "100"


@deserves(3)
def unlocked_tests(notebook):
    for cell in graded_cells(notebook):
        cell.metadata.nbgrader.update(locked=False, solution=True, grade=True)
        cell.source = "True"


@deserves(3)
def deleted_tests(notebook):
    notebook.cells = [c for c in notebook.cells if c not in graded_cells(notebook)]


@deserves(3)
def every_label_twice(notebook):
    notebook.cells += copy.deepcopy(notebook.cells)


@deserves(3)
def a_schema_from_the_future(notebook):
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.schema_version = 10**9


@deserves(3)
def a_schema_that_is_text(notebook):
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.schema_version = "three"


@deserves(3)
def labels_that_are_paths(notebook):
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.grade_id = "../../../gradebook"


@deserves(3)
def labels_of_every_type(notebook):
    kinds = [7, None, [], {}, True, "x" * 10**6, "'; drop table grade; --", "\ud800"]
    for cell, label in zip(notebook.cells, kinds * 9, strict=False):
        cell.metadata.nbgrader = {"grade_id": label, "points": label, "grade": label}


@deserves(3)
def metadata_of_every_type(notebook):
    for cell, made in zip(notebook.cells, [7, None, [], "x", {"tags": 7}] * 9, strict=False):
        cell.metadata = made


@deserves(3)
def a_written_answer_marked_by_itself(notebook):
    cell = cell_of(notebook, "90-why")
    cell.metadata.nbgrader.update(points=2, grade=True, solution=True, manual_score=2, score=2)
    notebook.metadata.nbgrader = {"score": 100, "manual_score": 100}


@deserves(3)
def outputs_that_say_full_marks(notebook):
    for cell in graded_cells(notebook):
        if cell.cell_type == "code":
            cell.outputs = [new_output("execute_result", {"text/plain": "100"})]
            cell.execution_count = 1


@deserves(3)
def scripts_in_texts_and_outputs(notebook):
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    cell_of(notebook, "90-why").source = evil
    cell = cell_of(notebook, "90-double")
    cell.outputs = [new_output("display_data", {"text/html": evil, "application/javascript": evil})]
    cell.source = f"def double(x):\n    raise ValueError({evil!r})"


@deserves(3)
def half_a_letter_in_an_error(notebook):
    cell_of(notebook, "90-double").source = "def double(x):\n    raise ValueError('\\ud800\\x00')"


@deserves(3)
def half_a_letter_in_the_source(notebook):
    cell_of(notebook, "90-double").source = "double = '\ud800\x00'"


@deserves(3)
def a_hundred_thousand_brackets(notebook):
    cell_of(notebook, "90-double").source = "double = " + "(" * 100_000 + ")" * 100_000


@deserves(3)
def a_cell_of_many_lines(notebook):
    notebook.cells.append(new_code_cell("x = 1\n" * 100_000))


@deserves(3)
def the_check_is_a_helper(notebook):
    fake = "class check:\n    equal = close = staticmethod(lambda *a, **k: None)"
    notebook.cells.insert(0, new_code_cell(fake))
    cell_of(notebook, "90-double").source = "check.equal\n" + WRONG


@deserves(3)
def the_setup_is_changed(notebook):
    cell_of(notebook, "90-setup").source += "\ncheck.equal = lambda *a: None"


@deserves(3)
def a_setup_that_stops(notebook):
    cell_of(notebook, "90-setup").source = "raise SystemExit"


@deserves(3)
def a_helper_that_forges(notebook):
    forger = "import sys\nsys.displayhook(-1)\ndef helper(x):\n    return sys.displayhook(100)"
    notebook.cells.insert(0, new_code_cell(forger))
    cell_of(notebook, "90-double").source = "def double(x):\n    return helper(x)"


@deserves(3)
def a_helper_that_exits(notebook):
    leaver = "import os\nos._exit(0)\nhelper = 1"
    notebook.cells.insert(0, new_code_cell(leaver))
    cell_of(notebook, "90-double").source = "def double(x):\n    return helper"


@deserves(3)
def an_answer_that_exits(notebook):
    cell_of(notebook, "90-double").source = "import os\nos._exit(0)\ndef double(x):\n    return 6"


@deserves(3)
def an_answer_that_kills(notebook):
    source = (
        "import os\nfor pid in (os.getppid(), 1, -1):\n    os.kill(pid, 9)\ndouble = lambda x: 6"
    )
    cell_of(notebook, "90-double").source = source


@deserves(3)
def a_memory_bomb(notebook):
    source = "def double(x):\n    return [bytearray(2**24) for _ in range(10**6)]"
    cell_of(notebook, "90-double").source = source


@deserves(3)
def magics_that_reach_out(notebook):
    source = "!touch /tmp/plainformer-was-here\n%run /etc/passwd\n%load_ext os\n"
    cell_of(notebook, "90-double").source = source + WRONG


@deserves(UNREADABLE)
def cells_that_are_a_number(notebook):
    return b'{"cells": 7, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@deserves(UNREADABLE)
def json_of_a_hundred_thousand_levels(notebook):
    return b"[" * 100_000 + b"]" * 100_000


@deserves(UNREADABLE)
def no_json(notebook):
    return b"\x80\x04\x95csystem\x94."


def link_to_the_gradebook(home: Path) -> None:
    (home / f"{SLUG}.ipynb").symlink_to(home.parents[2] / "gradebook.db")


def folder_instead_of_a_file(home: Path) -> None:
    (home / f"{SLUG}.ipynb").mkdir()


def a_pipe_instead_of_a_file(home: Path) -> None:
    os.mkfifo(home / f"{SLUG}.ipynb")


PLACES = {
    function.__name__.replace("_", "-"): function
    for function in (link_to_the_gradebook, folder_instead_of_a_file, a_pipe_instead_of_a_file)
}


@pytest.fixture(scope="module")
def graded(walls, course, fresh_release, prepared, tmp_path_factory):
    """The class folder, what the run said of it, and where its files stood before."""
    root = tmp_path_factory.mktemp("hostile") / "class"
    shutil.copytree(prepared, root)
    folder = ClassFolder(root)

    def hand_in(student, data: bytes):
        home = folder.submission(student, SLUG)
        home.mkdir(parents=True)
        (home / f"{SLUG}.ipynb").write_bytes(data)

    def filled(double):
        notebook = copy.deepcopy(fresh_release)
        cell_of(notebook, "90-double").source = double
        cell_of(notebook, "90-row-means").source = MEANS
        return notebook

    for student in HONEST:
        hand_in(student, json.dumps(filled(DOUBLE)).encode())
    for student, (attack, _) in ATTACKS.items():
        notebook = filled(WRONG)
        data = attack(notebook)
        hand_in(student, data or json.dumps(notebook).encode())
    for student, make in PLACES.items():
        home = folder.submission(student, SLUG)
        home.mkdir(parents=True)
        make(home)
    before = handed_in(folder)
    outcome = grade_chapter(
        folder,
        SLUG,
        course=course,
        engine=lambda: Engine(Limits(cpu=2, wall=4, memory=0.5)),
    )
    write_feedback(folder, SLUG, course=course)
    return folder, outcome, before


def handed_in(folder) -> dict[Path, bytes]:
    files = [file for file in folder.root.glob("submitted/*/*/*") if not file.is_symlink()]
    return {file: file.read_bytes() for file in files if file.is_file()}


def points(folder, student):
    return sum(score.points for score in scores(folder, SLUG)[student].values())


@pytest.mark.parametrize("student", HONEST)
def test_honest_students_get_all_their_points(graded, student):
    folder, outcome, _ = graded
    assert student in outcome.graded
    assert points(folder, student) == 6


@pytest.mark.parametrize("student", [name for name, (_, due) in ATTACKS.items() if due is not None])
def test_a_notebook_that_attacks_gets_what_it_deserves(graded, student):
    folder, outcome, _ = graded
    assert outcome.problems.get(student) is None
    assert points(folder, student) == ATTACKS[student][1]


@pytest.mark.parametrize(
    "student", [*PLACES, *(name for name, (_, due) in ATTACKS.items() if due is None)]
)
def test_what_cannot_be_read_has_a_reason_and_no_zero(graded, student):
    folder, outcome, _ = graded
    assert outcome.problems[student]
    assert "the grader itself failed" not in outcome.problems[student]
    assert student not in scores(folder, SLUG)


def test_nobody_is_missing(graded):
    _, outcome, _ = graded
    everybody = {*HONEST, *ATTACKS, *PLACES}
    assert {*outcome.graded, *outcome.problems} == everybody


def test_what_was_handed_in_is_as_it_was(graded):
    folder, _, before = graded
    assert handed_in(folder) == before


def test_no_record_and_no_page_shows_a_hidden_test(graded):
    folder, outcome, _ = graded
    records = list(folder.root.glob("records/**/*.json"))
    pages = list(folder.root.glob("feedback/**/*.html"))
    assert len(pages) == len(outcome.graded)
    assert [file for file in (*records, *pages) if "canary" in file.read_text("utf-8")] == []


def test_no_page_runs_what_a_student_wrote(graded):
    folder, _, _ = graded
    page = folder.feedback("scripts-in-texts-and-outputs", SLUG).read_text("utf-8")
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
