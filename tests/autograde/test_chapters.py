"""Which chapter a name means, strictly for a command and leniently for a file."""

import pytest
import yaml

from autograde.chapters import Course, UnknownChapter


@pytest.fixture
def course(tmp_path):
    files = ["pages/setup", "chapters/00-warm-up", "chapters/02-attention"]
    toc = {"parts": [{"chapters": [{"file": file} for file in files]}]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(toc))
    return Course(tmp_path)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("02", "02-attention"),
        ("2", "02-attention"),
        ("0", "00-warm-up"),
        ("02-attention", "02-attention"),
        ("solutions/02-attention.md", "02-attention"),
    ],
)
def test_a_chapter_is_named_by_number_slug_or_file(course, name, slug):
    assert course.resolve(name) == slug


@pytest.mark.parametrize("name", ["1", "attention", "02-attenton", "", "setup"])
def test_another_name_is_no_chapter_and_the_written_ones_are_listed(course, name):
    with pytest.raises(UnknownChapter, match=r"written chapters: 00-warm-up, 02-attention"):
        course.resolve(name)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("02-attention (1).ipynb", "02-attention"),
        ("2-attention", "02-attention"),
        ("My Attention.ipynb", "02-attention"),
        ("03-attention", None),
        ("homework.ipynb", None),
    ],
)
def test_a_file_is_guessed_by_its_number_or_its_word(course, name, slug):
    assert course.guess(name) == slug
