"""Honest notebooks in an unusual form: every answer in them is found and gets all its points."""

import copy
import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from autograde.extract import extract
from autograde.intake import find_notebook, read_notebook
from autograde.run import Engine, Limits

ANSWERS = {
    "90-double": "def double(x):\n    return 2 * x",
    "90-row-means": "def row_means(x):\n    return x.mean(-1)",
}
NAME = "90-example.ipynb"
WAYS = {}  # name -> a function of the filled-in notebook: changes it, or returns {file: bytes}


def way(function):
    WAYS[function.__name__.replace("_", " ")] = function
    return function


def place_of(notebook, ident):
    graded = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    return graded.index(ident)


def text_of(notebook) -> str:
    return json.dumps(notebook, ensure_ascii=False, indent=1)


@way
def as_released(notebook):
    pass


@way
def from_colab(notebook):
    for cell in notebook.cells:
        cell.pop("id", None)
        cell.metadata = {"id": "Xy12", "colab": {"base_uri": "https://localhost:8080/"}}
    notebook.metadata = {"colab": {"provenance": []}, "accelerator": "GPU"}
    notebook.nbformat_minor = 0


@way
def from_vs_code(notebook):
    for cell in notebook.cells:
        cell.pop("id", None)
        cell.metadata = {"vscode": {"languageId": "python"}}
    notebook.metadata = {"language_info": {"name": "python", "version": "3.13.1"}}
    notebook.nbformat_minor = 2


@way
def format_3(notebook):
    old = nbformat.v3.new_notebook(worksheets=[nbformat.v3.new_worksheet()])
    for cell in notebook.cells:
        if cell.cell_type == "code":
            made = nbformat.v3.new_code_cell(input=cell.source, metadata=cell.metadata)
        else:
            made = nbformat.v3.new_text_cell("markdown", source=cell.source)
        old.worksheets[0].cells.append(made)
    return {NAME: json.dumps(old).encode()}


@way
def windows_line_ends(notebook):
    for cell in notebook.cells:
        cell.source = cell.source.replace("\n", "\r\n")
    return {NAME: text_of(notebook).replace("\n", "\r\n").encode()}


@way
def byte_order_mark(notebook):
    return {NAME: b"\xef\xbb\xbf" + text_of(notebook).encode()}


@way
def utf_16(notebook):
    return {NAME: text_of(notebook).encode("utf-16")}


@way
def latin_1_comments(notebook):
    notebook.cells[place_of(notebook, "90-double")].source += "  # café"
    return {NAME: text_of(notebook).encode("latin-1")}


@way
def sources_as_lists_of_lines(notebook):
    for cell in notebook.cells:
        cell.source = cell.source.splitlines(keepends=True)
    return {NAME: text_of(notebook).encode()}


@way
def spaces_and_brackets_in_its_name(notebook):
    return {"90-example (1) final ÜBER.ipynb": text_of(notebook).encode()}


@way
def other_files_beside_it(notebook):
    return {
        NAME: text_of(notebook).encode(),
        "torch.py": b"raise ImportError('the wrong torch')",
        "90-example-Copy1.ipynb": b"{}",
        ".DS_Store": b"\0",
        "timestamp.txt": b"yesterday, I think",
    }


@way
def megabytes_of_output(notebook):
    cell = notebook.cells[place_of(notebook, "90-double")]
    cell.outputs = [new_output("stream", name="stderr", text="100%|####|\r" * 400_000)]


@way
def errors_and_strange_outputs(notebook):
    cell = notebook.cells[place_of(notebook, "90-double")]
    cell.outputs = [{"output_type": "pyerr"}, {"output_type": "error"}, 7, None]
    cell.execution_count = "many"


@way
def tags_on_every_cell(notebook):
    for cell in notebook.cells:
        cell.metadata["tags"] = ["skip-execution", "hide", 7]


@way
def every_cell_twice(notebook):
    notebook.cells = [copy.deepcopy(cell) for cell in notebook.cells for _ in range(2)]


@way
def cells_in_reverse_order(notebook):
    notebook.cells.reverse()


@way
def answers_at_the_very_end(notebook):
    own = [notebook.cells.pop(place_of(notebook, ident)) for ident in ANSWERS]
    notebook.cells += own


@way
def answers_all_in_one_cell(notebook):
    place = place_of(notebook, "90-double")
    notebook.cells[place].source = "\n\n".join(ANSWERS.values())
    del notebook.cells[place_of(notebook, "90-row-means")]


@way
def answers_in_new_cells_below_the_stubs(notebook):
    for ident, source in ANSWERS.items():
        place = place_of(notebook, ident)
        notebook.cells[place].source = "# see below"
        notebook.cells.insert(place + 1, new_code_cell(source))


@way
def a_helper_above(notebook):
    place = place_of(notebook, "90-double")
    notebook.cells[place].source = "def double(x):\n    return twice(x)"
    notebook.cells.insert(place, new_code_cell("def twice(x):\n    return x + x"))


@way
def a_helper_below(notebook):
    place = place_of(notebook, "90-double")
    notebook.cells[place].source = "def double(x):\n    return twice(x)"
    notebook.cells.insert(place + 1, new_code_cell("def twice(x):\n    return x + x"))


@way
def a_helper_that_needs_a_helper(notebook):
    place = place_of(notebook, "90-double")
    notebook.cells[place].source = "def double(x):\n    return twice(x)"
    helpers = ["from operator import add as plus", "def twice(x):\n    return plus(x, x)"]
    notebook.cells[place:place] = [new_code_cell(helper) for helper in helpers]


@way
def an_answer_uses_another_answer(notebook):
    place = place_of(notebook, "90-row-means")
    source = "def row_means(x):\n    return double(x).mean(-1) / double(1)"
    notebook.cells[place].source = source


@way
def imports_added_to_the_setup(notebook):
    notebook.cells[place_of(notebook, "90-setup")].source += "\nimport operator as op"
    notebook.cells[place_of(notebook, "90-double")].source = "double = lambda x: op.mul(2, x)"


@way
def scratch_cells_that_hang_or_exit(notebook):
    for source in ("while True: pass", "exit()", "import os; os.abort()", "1 / 0", "def f(:"):
        notebook.cells.insert(2, new_code_cell(source))
        notebook.cells.append(new_code_cell(source))


@way
def an_older_attempt_above(notebook):
    place = place_of(notebook, "90-double")
    notebook.cells.insert(place, new_code_cell("def double(x):\n    return x ** 2"))


@way
def an_older_attempt_in_a_text_cell(notebook):
    text = "def double(x):\n    return x ** 2"
    notebook.cells.insert(place_of(notebook, "90-double") + 1, new_markdown_cell(text))


@way
def grade_ids_renamed(notebook):
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.grade_id += "-copy"


@way
def grade_ids_swapped(notebook):
    one, two = (notebook.cells[place_of(notebook, ident)].metadata.nbgrader for ident in ANSWERS)
    one.grade_id, two.grade_id = two.grade_id, one.grade_id


@way
def edited_and_deleted_tests(notebook):
    notebook.cells[place_of(notebook, "90-double-by-hand")].source = "double(3)"
    del notebook.cells[place_of(notebook, "90-row-means-by-hand")]


@way
def setup_deleted(notebook):
    del notebook.cells[place_of(notebook, "90-setup")]


@way
def magics_and_shell_lines(notebook):
    for ident in ANSWERS:
        cell = notebook.cells[place_of(notebook, ident)]
        cell.source = f"%matplotlib inline\n!pip install torch\n{cell.source}\n%timeit 1"


@way
def cell_magics(notebook):
    for ident in ANSWERS:
        cell = notebook.cells[place_of(notebook, ident)]
        cell.source = f"%%time\n{cell.source}"


@way
def leftovers_of_the_stub(notebook):
    for ident in ANSWERS:
        cell = notebook.cells[place_of(notebook, ident)]
        cell.source += "\n    raise NotImplementedError  # YOUR CODE HERE"


@way
def no_code_but_magic_in_one_cell(notebook):
    notebook.cells.insert(0, new_code_cell("%%bash\necho hello"))


@way
def a_thousand_scratch_cells(notebook):
    notebook.cells += [new_code_cell(f"a{i} = {i}") for i in range(1000)]


@pytest.fixture(scope="module")
def engine():
    with Engine(Limits(cpu=5, wall=15, memory=1.0)) as running:
        yield running


@pytest.mark.parametrize("name", WAYS)
def test_every_answer_is_found_and_gets_all_points(engine, chapter, filled, tmp_path, name):
    notebook = filled(double=ANSWERS["90-double"], row_means=ANSWERS["90-row-means"])
    files = WAYS[name](notebook) or {NAME: text_of(notebook).encode()}
    for file, data in files.items():
        (tmp_path / file).write_bytes(data)
    sent = read_notebook(find_notebook(tmp_path, "90-example")[0])
    found = extract(sent, chapter)
    verdicts = engine.run(chapter, found.answers, extra=found.extra)
    assert len(verdicts) == 3
    assert [v.message for v in verdicts.values() if v.score != v.points] == []
