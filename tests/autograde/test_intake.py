"""Files as students send them: what can be read is read, the rest gets a reason for the teacher."""

import json

import pytest

from autograde.intake import Unreadable, find_notebook, read_notebook


def notebook(*sources, **more):
    cells = [{"cell_type": "code", "metadata": {}, "source": source} for source in sources]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}


@pytest.fixture
def sent(tmp_path):
    """Read a file with these bytes, or this notebook."""

    def read(content):
        path = tmp_path / "02-attention.ipynb"
        path.write_bytes(
            content if isinstance(content, bytes) else json.dumps(content).encode("utf-8")
        )
        return read_notebook(path)

    return read


def test_sources_come_as_strings_or_as_lists_of_lines(sent):
    assert [c.source for c in sent(notebook("a = 1", ["b = 2\n", "c = 3"])).cells] == [
        "a = 1",
        "b = 2\nc = 3",
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_obstacle_and_is_mentioned(sent, encoding):
    read = sent(json.dumps(notebook("name = 'Łuk'"), ensure_ascii=False).encode(encoding))
    assert read.cells[0].source == "name = 'Łuk'"
    assert "byte order mark" in read.notes[0]


def test_letters_that_are_not_utf_8_are_replaced_and_the_rest_is_read(sent):
    read = sent(json.dumps(notebook("x = 1  # café"), ensure_ascii=False).encode("latin-1"))
    assert read.cells[0].source.startswith("x = 1  # caf")
    assert "not UTF-8" in read.notes[0]


def test_a_lone_surrogate_can_be_written_again(sent):
    assert "\ud800" in json.loads('"\\ud800"')
    source = sent(notebook("s = '\ud800'")).cells[0].source
    assert source.encode("utf-8") == b"s = '?'"


def test_format_3_is_read(sent):
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": "x = 1"}]}], "nbformat": 3}
    read = sent(old)
    assert read.cells[0].source == "x = 1"
    assert "format 3" in read.notes[0]


@pytest.mark.parametrize(
    "metadata", [None, [], "x", {"nbgrader": 7}, {"nbgrader": {"grade_id": 7}}]
)
def test_metadata_of_any_shape_is_survived(sent, metadata):
    cell = {"cell_type": "code", "metadata": metadata, "source": "x = 1"}
    assert sent({"cells": [cell]}).cells[0].grade_id is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"   \n", "is empty"),
        (b"print(1)", "not valid JSON"),
        (b'{\n"cells": [\n<<<<<<< HEAD\n]}', "unfinished git merge"),
        (b"[1, 2]", "not a notebook"),
        (b'{"cells": 7}', "no list of cells"),
        (b'{"cells": [7]}', "cell 1"),
        (b"[" * 100_000, "not valid JSON"),
        (b"\x00\x01\x02", "not valid JSON"),
    ],
)
def test_what_cannot_be_read_gets_a_reason(sent, content, reason):
    with pytest.raises(Unreadable, match=reason):
        sent(content)


# Odd JSON


def cell(**fields):
    return {"cells": [{"cell_type": "code", "metadata": {}, **fields}]}


@pytest.mark.parametrize(
    ("fields", "source", "note"),
    [
        ({"source": None}, "", "what is no text"),
        ({"source": 7}, "", "what is no text"),
        ({"source": {"a": 1}}, "", "what is no text"),
        ({"source": ["a = 1\n", 7, None, ["x"], "b = 2"]}, "a = 1\nb = 2", "what is no text"),
        ({"source": ["def f(x):", "    return x"]}, "def f(x):\n    return x", "lost their ends"),
        ({"source": ["a = 1"]}, "a = 1", None),
        ({"source": []}, "", None),
        ({}, "", None),
        ({"input": ["a = 1\n", "b = 2"], "prompt_number": 3}, "a = 1\nb = 2", None),
        ({"source": "a = 1\r\nb = 2"}, "a = 1\nb = 2", None),
        ({"source": "<<<<<<< local\nx = 1\n=======\nx = 2\n>>>>>>> remote"}, None, "git merge"),
        ({"source": "x" * 200_001}, "", "has 200001 characters and was not read"),
        ({"source": "x = 1", "outputs": [None, 7, {"text": ["y"] * 100_000}]}, "x = 1", None),
        ({"source": "x = 1", "execution_count": float("nan")}, "x = 1", None),
        ({"source": "x = 1", "metadata": {"tags": [7, None, [], "hide"]}}, "x = 1", None),
        ({"source": "x = 1", "metadata": {"nbgrader": {"grade_id": ["a"]}}}, "x = 1", None),
        ({"source": "x = 1", "metadata": {"nbgrader": {"grade_id": {"a": 1}}}}, "x = 1", None),
    ],
)
def test_a_cell_of_any_shape_is_read(sent, fields, source, note):
    read = sent(cell(**fields))
    assert source in (read.cells[0].source, None)
    assert len(read.notes) == (note is not None)
    assert (note or "") in "".join(read.notes)


@pytest.mark.parametrize(
    "content",
    [
        b'{"cells": [{"cell_type": "raw", "cell_type": "code", "source": 1, "source": "x = 1"}]}',
        b'{"cells": [{"cell_type": "code", "source": "x = 1"}], "n": ' + b"9" * 5000 + b"}",
        b'{"cells": [{"cell_type": "code", "source": "x = 1", "n": [NaN, Infinity, -1e999]}]}',
        b'{"nbformat": 2, "worksheets": [null, 7, {"cells": 7}, {"cells": '
        b'[{"cell_type": "code", "input": "x = 1"}]}]}',
        '{"cells": [{"cell_type": "code", "source": "x = 1"}]}'.encode("utf-16-le"),
        '{"cells": [{"cell_type": "code", "source": "x = 1"}]}'.encode("utf-32"),
    ],
)
def test_odd_json_is_read(sent, content):
    assert [(c.kind, c.source) for c in sent(content).cells] == [("code", "x = 1")]


def test_a_cell_that_is_none_is_passed_over_and_the_numbers_stay(sent):
    read = sent({"cells": [None, *notebook("a = 1")["cells"], 7, *notebook("b = 2")["cells"]]})
    assert [(c.number, c.source) for c in read.cells] == [(2, "a = 1"), (4, "b = 2")]
    assert read.notes == ["not a cell, and passed over: cell 1, 3"]


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"kernelspec": {"name": "ir", "language": "R"}}, "a kernel for R"),
        ({"language_info": {"name": "julia"}}, "a kernel for julia"),
        ({"kernelspec": {"name": "python3", "language": "python"}}, None),
        ({"kernelspec": {"name": "conda-env-x-py", "display_name": "x"}}, None),
        ({"kernelspec": {"name": "my kernel"}, "language_info": {"name": "ipython"}}, None),
        ({"kernelspec": 7, "language_info": [1]}, None),
        (None, None),
    ],
)
def test_a_kernel_of_another_language_is_mentioned(sent, metadata, said):
    read = sent(notebook("x = 1", metadata=metadata))
    assert len(read.cells) == 1
    assert len(read.notes) == (said is not None)
    assert (said or "") in "".join(read.notes)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"%PDF-1.7 ...", "a PDF"),
        (b"\x1f\x8b\x08", "a gzip archive"),
        (b"Rar!\x1a\x07", "a RAR archive"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1", "git lfs"),
        (b"PK\x03\x04 broken", "damaged or no zip"),
    ],
)
def test_a_file_of_another_kind_is_called_by_its_name(sent, content, what):
    with pytest.raises(Unreadable, match=what):
        sent(content)


def test_too_many_cells_or_letters_are_refused(sent, monkeypatch):
    monkeypatch.setattr("autograde.notebook.MOST_CELLS", 2)
    with pytest.raises(Unreadable, match="3 cells, at most 2"):
        sent(notebook("a", "b", "c"))
    monkeypatch.setattr("autograde.notebook.LONGEST", 5)
    with pytest.raises(Unreadable, match="more than 5 characters"):
        sent(notebook("abc", "abc"))


def test_megabytes_of_outputs_are_not_kept(sent):
    one = notebook("x = 1")
    one["cells"][0]["outputs"] = [{"output_type": "stream", "text": "100%|#### " * 400_000}]
    read = sent(one)
    assert len(repr(read)) < 1000


def test_a_file_that_cannot_be_opened_gets_a_reason(tmp_path):
    with pytest.raises(Unreadable, match="cannot be read"):
        read_notebook(tmp_path / "gone.ipynb")


def test_a_huge_file_is_refused_before_it_is_read(sent, monkeypatch):
    monkeypatch.setattr("autograde.intake.LARGEST", 1000)
    with pytest.raises(Unreadable, match="outputs cleared"):
        sent(notebook("x" * 2000))


# Which file it is


def test_the_notebook_with_the_right_name_wins_and_the_others_are_mentioned(tmp_path):
    for name in ("02-attention.ipynb", "02-attention-Copy1.ipynb", "data.csv"):
        (tmp_path / name).write_text("{}")
    path, notes = find_notebook(tmp_path, "02-attention")
    assert path.name == "02-attention.ipynb"
    assert notes == ["also sent, and not graded: 02-attention-Copy1.ipynb"]


def test_a_single_notebook_may_have_any_name(tmp_path):
    (tmp_path / "homework (1).IPYNB").write_text("{}")
    path, notes = find_notebook(tmp_path, "02-attention")
    assert path.name == "homework (1).IPYNB"
    assert "homework (1).IPYNB, not 02-attention.ipynb" in notes[0]


def test_two_notebooks_with_other_names_are_left_to_the_teacher(tmp_path):
    for name in ("old.ipynb", "new.ipynb"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(Unreadable, match=r"new\.ipynb, old\.ipynb"):
        find_notebook(tmp_path, "02-attention")


def test_a_folder_without_a_notebook_says_what_it_holds(tmp_path):
    (tmp_path / "02-attention.pdf").write_text("")
    with pytest.raises(Unreadable, match=r"only 02-attention\.pdf"):
        find_notebook(tmp_path, "02-attention")


def test_a_link_is_not_followed_even_with_the_right_name(tmp_path):
    solutions = tmp_path / "solutions.ipynb"
    solutions.write_text("{}")
    folder = tmp_path / "sent"
    folder.mkdir()
    (folder / "02-attention.ipynb").symlink_to(solutions)
    with pytest.raises(Unreadable, match="no notebook"):
        find_notebook(folder, "02-attention")


@pytest.mark.parametrize(
    "name", ["torch.py", "random.py", "sitecustomize.py", "torch/__init__.py", "usercustomize.py"]
)
def test_code_beside_the_notebook_is_not_used_and_mentioned(tmp_path, name):
    for file in ("02-attention.ipynb", name):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("raise SystemExit")
    path, notes = find_notebook(tmp_path, "02-attention")
    assert path.name == "02-attention.ipynb"
    assert notes == [f"code beside the notebook is not used: {name.split('/')[0]}"]


def test_a_notebook_in_a_folder_inside_is_found(tmp_path):
    home = tmp_path / "02-attention"
    for file in ("my work/02-attention.ipynb", ".ipynb_checkpoints/02-attention.ipynb"):
        (home / file).parent.mkdir(parents=True)
        (home / file).write_text("{}")
    path, notes = find_notebook(home, "02-attention")
    assert path == home / "my work" / "02-attention.ipynb"
    assert notes == ["it lay in the folder my work"]


def test_what_was_replaced_is_not_graded_even_when_it_is_all_there_is(tmp_path):
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / "0123456789abcdef.ipynb").write_text("{}")
    with pytest.raises(Unreadable, match="no notebook"):
        find_notebook(tmp_path, "02-attention")


def test_a_folder_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "02-attention.ipynb").write_text("{}")
    (tmp_path / "sent").symlink_to(tmp_path / "real")
    with pytest.raises(Unreadable, match="is a link"):
        find_notebook(tmp_path / "sent", "02-attention")
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "inner").symlink_to(tmp_path / "real")
    with pytest.raises(Unreadable, match="no notebook"):
        find_notebook(tmp_path / "outer", "02-attention")


def test_reading_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "02-attention.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(notebook("x = '\ud800'")).encode())
    before = path.read_bytes(), path.stat().st_mtime_ns
    read_notebook(find_notebook(tmp_path, "02-attention")[0])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
