"""MyST made readable where it is not known: words for citations and links, pictures inside."""

import base64

import pytest

from autograde.plain_markdown import plain

BIB = r"""
@inproceedings{vaswani2017, author = {Vaswani, Ashish and Shazeer, Noam and Parmar, Niki},
  title = {Attention}, year = {2017}}
@article{bahdanau2015, author = {Bahdanau, Dzmitry and Cho, Kyunghyun}, title = {T}, year = {2015}}
@article{godel1931, author = {G{\"o}del, Kurt}, title = {U}, year = {1931}}
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "references.bib").write_text(BIB)
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "five.svg").write_text("<svg/>")
    (tmp_path / "_static" / "photo.jpg").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("myst", "words"),
    [
        ("so it is {cite:p}`vaswani2017`.", "so it is (Vaswani et al., 2017)."),
        ("{cite:t}`bahdanau2015` say", "Bahdanau and Cho (2015) say"),
        ("{cite:p}`godel1931,vaswani2017`", "(Gödel, 1931; Vaswani et al., 2017)"),
        ("see {doc}`chapter 00 <00-warm-up>`", "see chapter 00"),
        ("see {ref}`the exercise <ex-02-softmax>`", "see the exercise"),
        ("(ch-attention)=\n# Attention", "# Attention"),
        ("plain *words* and $x$", "plain *words* and $x$"),
    ],
)
def test_words_stand_for_roles(root, myst, words):
    assert plain(myst, root) == words


def test_pictures_travel_with_the_notebook(root):
    text = plain("![five steps](../_static/five.svg)", root)
    start, data = text.removesuffix(")").split(",")
    assert start == "![five steps](data:image/svg+xml;base64"
    assert base64.b64decode(data) == b"<svg/>"


@pytest.mark.parametrize(
    ("myst", "advice"),
    [
        ("{ref}`ex-02-softmax`", "words of its own"),
        ("{cite:p}`nobody1900`", "not in references.bib"),
        ("![six](../_static/six.svg)", r"picture _static/six\.svg does not exist"),
        ("![a photo](../_static/photo.jpg)", "none of .svg, .png; convert it"),
    ],
)
def test_what_cannot_be_put_in_words_is_the_authors_error(root, myst, advice):
    with pytest.raises(ValueError, match=advice):
        plain(myst, root)


@pytest.mark.parametrize("broken", ["@article{vaswani2017, author = {", None])
def test_a_broken_bibliography_is_one_clear_line(tmp_path, broken):
    if broken is not None:
        (tmp_path / "references.bib").write_text(broken)
    with pytest.raises(
        ValueError, match=r"references\.bib cannot be read: .*mend it there"
    ) as said:
        plain("{cite:p}`vaswani2017`", tmp_path)
    assert "\n" not in str(said.value)
