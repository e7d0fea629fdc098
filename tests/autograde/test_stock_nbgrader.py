"""nbgrader itself, on our tree and with the settings we write: it works, and gives the same marks.

Slow (it starts kernels), so one class serves all: an honest learner, and one who puts the tag
`skip-execution` on the tests.
"""

import copy
import shutil

import nbformat
import pytest

from autograde.grade import grade_chapter
from autograde.nbgrader_config import nbgrader_config
from autograde.plan import ClassFolder
from autograde.run import Engine
from autograde.stock import Compared, StockError, compare_with_stock, nbgrader

SLUG = "90-example"


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


def test_stock_autograde_gives_the_same_marks(graded):
    rows = compare_with_stock(graded, SLUG)
    assert [str(row) for row in rows if not row.equal] == []
    assert {row.test: row.stock for row in rows if row.student == "honest"} == {
        "90-double-by-hand": 1.0,
        "90-double-general": 0.0,
        "90-row-means-by-hand": 3.0,
        "90-why": 0.0,
    }
    # our settings: the tag buys nothing
    assert sum(row.stock for row in rows if row.student == "skips") == 0


def test_a_mark_that_differs_is_a_row_that_is_not_equal():
    assert not Compared("ada", "90-double-general", 2.0, 0.0).equal
    assert not Compared("ada", "90-double-general", 2.0, None).equal


def test_stock_that_fails_says_what_nbgrader_said(graded):
    with pytest.raises(StockError, match=r"autograde 91-none failed:\n[\s\S]*91-none"):
        nbgrader(graded, "autograde", "91-none")


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


def test_doctor_lays_the_marks_of_both_side_by_side(class_of, filled, command, monkeypatch, capsys):
    from autograde import stock

    folder = class_of(ada=filled())
    rows = [stock.Compared("ada", "90-a", 1.0, 1.0), stock.Compared("ada", "90-b", 2.0, None)]
    monkeypatch.setattr(stock, "compare_with_stock", lambda folder, slug: rows)
    words = ("doctor", "--compare-stock", "90", "--class-dir", folder.root)
    assert command(*words) == 1
    said = capsys.readouterr().out
    assert "ada, 90-b: ours 2.0, nbgrader None" in said
    assert "2 marks of 1 students compared, 1 differ" in said
    rows.pop()
    assert command(*words, "--json") == 0
