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
