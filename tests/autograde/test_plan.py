"""Where things lie, and what makes a submission count as changed."""

import os
import shutil
from pathlib import Path

import pytest

from autograde import plan
from autograde.plan import NoClass, source_digest, submission_digest, write

SLUG = "90-example"


@pytest.fixture
def folder(class_of):
    return class_of(ada=b"{}")


def test_students_are_those_with_a_folder_for_the_chapter(folder):
    for path in ("submitted/bob/91-other", "submitted/.hidden/90-example"):
        (folder.root / path).mkdir(parents=True)
    (folder.root / "submitted" / "notes.txt").write_text("")
    assert folder.students(SLUG) == ["ada"]


def test_a_folder_without_submissions_says_where_they_belong(folder, tmp_path):
    with pytest.raises(NoClass, match=r"submitted/STUDENT/90-example.*grade --sample"):
        type(folder)(tmp_path / "elsewhere").students(SLUG)


def test_the_chapters_of_a_class_are_those_that_somebody_handed_in(folder, course):
    assert folder.chapters(course) == [SLUG]


@pytest.mark.parametrize("change", ["content", "another file", "renamed"])
def test_the_digest_sees_every_change_of_a_submission(folder, change):
    home = folder.submission("ada", SLUG)
    before = submission_digest(home)
    match change:
        case "content":
            (home / f"{SLUG}.ipynb").write_text("{ }")
        case "another file":
            (home / "timestamp.txt").write_text("")
        case "renamed":
            (home / f"{SLUG}.ipynb").rename(home / "other.ipynb")
    assert submission_digest(home) != before


def test_the_digest_does_not_see_the_time_of_a_file(folder):
    home = folder.submission("ada", SLUG)
    before = submission_digest(home)
    os.utime(home / f"{SLUG}.ipynb", (0, 0))
    assert submission_digest(home) == before


def test_our_digest_changes_with_the_source_of_the_chapter(course, tmp_path):
    copy = type(course)(tmp_path)
    copy.source(SLUG).parent.mkdir()
    copy.source(SLUG).write_bytes(course.source(SLUG).read_bytes())
    same = source_digest(copy, SLUG)
    assert same == source_digest(course, SLUG)
    copy.source(SLUG).write_bytes(course.source(SLUG).read_bytes() + b"\n")
    assert source_digest(copy, SLUG) != same


@pytest.mark.parametrize(
    "part", ["judging.py", "notebook.py", "engine/border.py", "engine/__init__.py"]
)
def test_our_digest_changes_with_whatever_decides_about_marks(course, monkeypatch, tmp_path, part):
    ours = Path(plan.__file__).parent
    shutil.copytree(ours, tmp_path / "autograde", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(plan, "__file__", str(tmp_path / "autograde" / "plan.py"))
    same = source_digest(course, SLUG)
    assert same == source_digest(course, SLUG)
    with (tmp_path / "autograde" / part).open("a") as file:
        file.write("# changed\n")
    assert source_digest(course, SLUG) != same


def test_a_record_comes_back_as_it_was_and_a_damaged_one_counts_as_none(folder):
    record = {"student": "ada", "chapter": SLUG, "notes": ["Łuk"]}
    folder.write_record(record)
    assert folder.read_record("ada", SLUG) == record
    folder.record("ada", SLUG).write_text('{"student": "ada", "chap')
    assert folder.read_record("ada", SLUG) is None


def test_writing_leaves_nothing_beside_the_file_and_tells_whether_it_changed(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    assert write(path, "one") is True
    assert write(path, "one") is False
    assert write(path, "two") is True
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]
    assert path.read_text() == "two"
