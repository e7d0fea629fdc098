"""nbgrader itself, on our tree and with the settings we write: it works, and gives the same marks.

Slow (it starts kernels), so one class serves all: an honest learner, and one who puts the tag
`skip-execution` on the tests.
"""

import copy
import os
import shutil
import subprocess
import sys

import nbformat
import pytest

from autograde.environment import BIN
from autograde.grade import grade_chapter
from autograde.nbgrader_config import nbgrader_config
from autograde.plan import ClassFolder
from autograde.record import scores
from autograde.run import Engine

SLUG = "90-example"


def nbgrader(folder, *words):
    """One of nbgrader's own commands, run in the class folder as its manual says."""
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=folder.root,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def points(folder):
    return {
        student: {test: score.points for test, score in line.items()}
        for student, line in scores(folder, SLUG).items()
    }


@pytest.fixture(scope="module")
def graded(course, prepared, fresh_release, tmp_path_factory):
    """A class graded by us, with nbgrader's settings beside it."""
    folder = ClassFolder(tmp_path_factory.mktemp("stock") / "class")
    shutil.copytree(prepared, folder.root)
    honest, skips = copy.deepcopy(fresh_release), copy.deepcopy(fresh_release)
    for cell in honest.cells:
        ident = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = {
            "90-double": "def double(x):\n    return {3: 6, 5: 10}[x]",
            "90-row-means": "def row_means(x):\n    return x.mean(-1)",
            "90-why": "Axes. <script>alert(1)</script> [see](javascript:alert(1)) ![](http://x/y)",
        }.get(ident, cell.source)
    for cell in skips.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.metadata.tags = ["skip-execution"]
    for student, notebook in [("honest", honest), ("skips", skips)]:
        home = folder.submission(student, SLUG)
        home.mkdir(parents=True)
        nbformat.write(notebook, home / f"{SLUG}.ipynb")
    outcome = grade_chapter(folder, SLUG, course=course, engine=Engine)
    assert (outcome.graded, outcome.problems) == (["honest", "skips"], {})
    (folder.root / "nbgrader_config.py").write_text(nbgrader_config(folder.root))
    return folder


def test_stock_autograde_gives_the_same_marks(graded, tmp_path):
    other = ClassFolder(tmp_path / "class")
    for part in ("source", "submitted"):
        shutil.copytree(graded.root / part, other.root / part)
    (other.root / "nbgrader_config.py").write_text(nbgrader_config(other.root))
    nbgrader(other, "generate_assignment", SLUG)
    nbgrader(other, "autograde", SLUG)
    assert points(other) == points(graded)
    assert points(graded)["honest"] == {
        "90-double-by-hand": 1.0,
        "90-double-general": 0.0,
        "90-row-means-by-hand": 3.0,
        "90-why": 0.0,
    }
    assert sum(points(other)["skips"].values()) == 0  # our settings: the tag buys nothing


def test_stock_feedback_and_export_work_on_what_we_wrote(graded):
    nbgrader(graded, "generate_feedback", SLUG, "--student=honest")
    page = (graded.root / "feedback" / "honest" / SLUG / f"{SLUG}.html").read_text()
    assert "Score: 4.0 / 8.0" in page
    assert "expected 82" in page or "KeyError" in page  # our message, as the output of the test
    assert "<script>alert(1)" not in page
    assert 'href="javascript' not in page
    assert 'src="http://x/y' not in page
    nbgrader(graded, "export", "--to=grades.csv")
    lines = (graded.root / "grades.csv").read_text().splitlines()
    assert any(",honest,," in line and line.endswith(",4.0,8.0") for line in lines)


def test_formgrader_lists_the_assignment_with_its_submissions(graded):
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    config = Config()
    config.CourseDirectory.root = str(graded.root)
    api = NbGraderAPI(config=config)
    (assignment,) = api.get_assignments()
    api.gradebook.close()
    assert (assignment["name"], assignment["num_submissions"]) == (SLUG, 2)
    assert (assignment["max_score"], assignment["average_score"]) == (8.0, 2.0)


def test_the_command_writes_the_settings_and_leaves_others_alone(tmp_path, command, capsys):
    assert command("nbgrader-config", "--class-dir", tmp_path) == 0
    path = tmp_path / "nbgrader_config.py"
    assert "skip_cells_with_tag" in path.read_text()
    assert str(path) in capsys.readouterr().out
    path.write_text("c = get_config()\n")
    assert command("nbgrader-config", "--class-dir", tmp_path) == 1
    assert "exists and says something else" in capsys.readouterr().err


def test_the_command_makes_no_class_folder_of_its_own(tmp_path, command, capsys):
    assert command("nbgrader-config", "--class-dir", tmp_path / "clas") == 2
    assert "there is no folder" in capsys.readouterr().err
    assert not (tmp_path / "clas").exists()


@pytest.mark.parametrize("words", [("90",), ("--student", "ada")])
def test_the_settings_are_of_a_whole_class(tmp_path, command, words):
    with pytest.raises(SystemExit) as stopped:
        command("nbgrader-config", *words, "--class-dir", tmp_path)
    assert stopped.value.code == 2
