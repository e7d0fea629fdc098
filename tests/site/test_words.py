"""What the pages say about commands and sources, held against the checkout."""

import re

import pytest

import build_book

ROOT = build_book.ROOT
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"pages/{p.name}" for p in ROOT.glob("pages/*.md")),
]
COMMAND = re.compile(r"^(?:python -m autograde|python -c|python _ext|plainformer) ", re.MULTILINE)


def fenced(text: str) -> list[str]:
    return re.findall(r"^```(?:text|sh)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_there_are_commands_to_look_at():
    with_commands = [p for p in PAGES if any(map(COMMAND.search, fenced((ROOT / p).read_text())))]
    assert {"README.md", "pages/grading.md", "pages/setup.md", "pages/how-to-use.md"} <= {
        *with_commands
    }


@pytest.mark.parametrize("page", PAGES)
def test_the_environment_is_switched_on_before_the_first_command(page):
    text = (ROOT / page).read_text("utf-8")
    blocks = [block for block in fenced(text) if COMMAND.search(block)]
    numbered = re.search(r"^\d+\. .*`python -m autograde", text, re.MULTILINE)
    places = [text.index(b) + COMMAND.search(b).start() for b in blocks[:1]]
    places += [numbered.start()] if numbered else []
    for place in places:
        before = text[:place]
        assert "source .venv/bin/activate" in before or "activate\n" in before, page
        assert r".venv\Scripts\activate" in text, page


def entries() -> dict[str, str]:
    """Key to entry, of every work in the bibliography."""
    text = (ROOT / "references.bib").read_text("utf-8")
    return dict(re.findall(r"^@\w+\{(\w+),(.*?)^\}", text, re.MULTILINE | re.DOTALL))


def test_every_work_in_the_bibliography_is_cited():
    """By its key, or in words: surname and year, as chapters do that need no key."""
    files = [*ROOT.glob("pages/*.md"), *ROOT.glob("solutions/*.md"), ROOT / "index.md"]
    text = " ".join(" ".join(path.read_text("utf-8") for path in files).split())
    cited = {key for keys in re.findall(r"\{cite:\w\}`([^`]+)`", text) for key in keys.split(",")}
    for key, entry in entries().items():
        surname = re.search(r"author = \{+(\w+)", entry)[1]
        year = re.search(r"year = \{(\d+)\}", entry)[1]
        assert key in cited or re.search(rf"{surname}[^()]{{0,40}}{year}", text), key


def test_preprints_are_named_in_the_field_that_becomes_a_link():
    assert not [key for key, entry in entries().items() if "note = {arXiv" in entry]


def test_chapters_are_called_by_two_digits():
    """As in commands and file names: chapter 02."""
    for page in [*PAGES, "index.md"]:
        text = (ROOT / page).read_text("utf-8")
        assert not re.findall(r"\b[Cc]hapter \d\b", text), page
