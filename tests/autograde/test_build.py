"""The builder: what students get, that nothing leaks, that a rebuild is the same byte for byte."""

import json
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from autograde.build import instructor_notebook, release, site_texts, student_bytes
from autograde.chapters import Course
from autograde.source import load
from autograde.source_cells import STUB, SourceError

EXAMPLE = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def student(fresh_release):
    return json.loads(nbformat.writes(fresh_release))


def cells(notebook, **wanted):
    def ours(cell):
        return cell["metadata"].get("plainformer", {})

    return [c for c in notebook["cells"] if wanted.items() <= ours(c).items()]


def text(cell) -> str:
    return "".join(cell["source"])


def test_a_rebuild_is_the_same_byte_for_byte(fresh_release):
    built = student_bytes(load("90-example", Course(EXAMPLE)))
    assert built == (nbformat.writes(fresh_release).rstrip() + "\n").encode()


def test_students_get_the_stub_and_the_visible_tests_only(student):
    [double] = cells(student, exercise="90-double", role="exercise")
    assert text(double).endswith(STUB)
    whole = json.dumps(student)
    assert "canary_of_the_hidden_test" not in whole
    assert "They sum over different axes" not in whole
    assert "BEGIN SOLUTION" not in whole
    assert "jupytext" not in whole


def test_the_instructor_sees_everything(chapter):
    whole = "\n".join(cell.source for cell in instructor_notebook(chapter).cells)
    assert "canary_of_the_hidden_test" in whole
    assert "return 2 * x" in whole
    assert "They sum over different axes" in whole


def test_graded_cells_carry_nbgraders_metadata(student):
    [test] = cells(student, test="90-double-general")
    grading = test["metadata"]["nbgrader"]
    assert grading["schema_version"] == 3
    assert (grading["grade"], grading["locked"], grading["solution"]) == (True, True, False)
    assert (grading["grade_id"], grading["points"]) == ("90-double-general", 2.0)
    [why] = cells(student, role="written")
    assert why["metadata"]["nbgrader"]["grade"]
    assert why["metadata"]["nbgrader"]["solution"]


def test_run_all_goes_on_after_an_unwritten_answer(student):
    for role in ("exercise", "test"):
        for cell in cells(student, role=role):
            assert cell["metadata"]["tags"] == ["raises-exception"]


def test_no_cell_is_tagged_to_be_skipped(student):
    assert "skip-execution" not in json.dumps(student)


def test_labels_are_for_the_site_only(student, chapter):
    assert "(ch-example)=" not in "".join(map(text, student["cells"]))
    originals = site_texts(chapter)
    [title] = [cell["id"] for cell in student["cells"] if "# An example\n" in text(cell)]
    assert originals[title].startswith("(ch-example)=\n# An example")


def test_hints_are_folded(student):
    [hint] = cells(student, role="hint")
    assert text(hint).startswith('<details class="hint">\n<summary>Hint 1</summary>')


def test_release_writes_once_and_then_leaves_the_file_alone(
    tmp_path, chapter, fresh_release, monkeypatch
):
    monkeypatch.setattr("autograde.build.student_notebook", lambda _: fresh_release)
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "90-example.md").write_text(chapter.path.read_text())
    course = Course(tmp_path)
    assert release("90-example", course)
    assert not release("90-example", course)
    assert course.notebook("90-example").read_bytes() == student_bytes(chapter)


def test_what_is_wrong_with_a_text_is_said_with_its_cell(chapter):
    lost = replace(chapter.cells[0], text="![x](../_static/lost.svg)")
    with pytest.raises(SourceError, match=r"90-example\.md, cell 0: the picture _static/lost\.svg"):
        instructor_notebook(replace(chapter, cells=(lost,)))
