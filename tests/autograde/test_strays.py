"""What lies in the wrong place below submitted/ is listed, and costs the exit status."""

import json

import pytest

from autograde.strays import strays

SLUG = "90-example"


@pytest.fixture
def folder(class_of, filled):
    """ada handed in rightly; what others did is put in by each test."""
    return class_of(ada=filled())


def put(folder, path):
    file = folder.root / "submitted" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "eve/x.ipynb",
            "submitted/eve/x.ipynb lies in no chapter's folder; move it to "
            "submitted/eve/CHAPTER/ (written chapters: 90-example)",
        ),
        ("eve/90 mine.ipynb", "move it to submitted/eve/90-example/"),
        (
            "fay/090-something/x.ipynb",
            "submitted/fay/090-something is no chapter; move the notebook in it to "
            "submitted/fay/90-example/ (written chapters: 90-example)",
        ),
        ("fay/Example/x.ipynb", "to submitted/fay/90-example/"),
        ("gus.ipynb", "submitted/gus.ipynb lies in no student's folder"),
        ("everybody.zip", "submitted/everybody.zip lies in no student's folder"),
        ("90-example/hal/x.ipynb", "submitted/90-example is named like a chapter"),
    ],
)
def test_a_misplaced_submission_is_named_with_a_way_out(folder, course, path, said):
    put(folder, path)
    (stray,) = strays(folder, course)
    assert str(stray).startswith("not graded: submitted/")
    assert said in str(stray)


def test_what_is_no_submission_is_no_stray(folder, course):
    for path in (
        "list-of-names.txt",
        "eve/notes.txt",
        ".hidden/x.ipynb",
        "eve/.ipynb_checkpoints/x",
    ):
        put(folder, path)
    (folder.root / "submitted" / "hal").mkdir()
    assert strays(folder, course) == []


@pytest.mark.parametrize("name", ["grade", "status", "report", "feedback", "export"])
def test_every_command_tells_of_strays(folder, command, capsys, name):
    command("grade", "--class-dir", folder.root)
    put(folder, "fay/9-example/x.ipynb")
    capsys.readouterr()
    assert command(name, "--class-dir", folder.root) == 1
    assert "not graded: submitted/fay/9-example is no chapter" in capsys.readouterr().err
    assert command(name, "--class-dir", folder.root, "--json") == 1
    (stray,) = json.loads(capsys.readouterr().out)["strays"]
    assert (stray["student"], stray["path"]) == ("fay", "submitted/fay/9-example")


def test_one_student_hears_only_of_their_own(folder, command, capsys):
    put(folder, "fay/9-example/x.ipynb")
    assert command("grade", "--student", "ada", "--class-dir", folder.root) == 0
    assert command("grade", "--student", "fay", "--class-dir", folder.root) == 1
    assert "submitted/fay/9-example" in capsys.readouterr().err
