"""What the site must not give away: hidden tests anywhere, solutions outside their drop-downs."""

import html
import json
import re

import pytest

import build_book
from autograde import source
from autograde.source_cells import HIDDEN, SOLUTION

SHORTEST = 20  # shorter lines, such as `return scores`, stand in many places by right


def slugs() -> list[str]:
    return build_book.chapter_slugs(build_book.ROOT)


def squeezed(text: str) -> str:
    """Text without any white space: highlighting and wrapping must not hide a find."""
    return re.sub(r"\s+", "", text)


def visible_text(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page))


def without_solutions(page: str) -> str:
    return re.sub(r'<details class="solution".*?</details>', "", page, flags=re.DOTALL)


def region(text: str, marks: tuple[str, str]) -> list[str]:
    """The lines between two markers."""
    lines, inside = [], False
    for line in text.splitlines():
        if marks[0] in line or marks[1] in line:
            inside = marks[0] in line
        elif inside:
            lines.append(line.strip())
    return lines


def secrets(slug: str, marks: tuple[str, str]) -> list[str]:
    """The marked lines of a chapter that everybody may not read anyway.

    Everybody may read the student notebooks and the library, which share a line here and there.
    """
    notebooks = sorted((build_book.ROOT / "chapters").glob("*.ipynb"))
    library = (build_book.ROOT / "lib" / "plainformer").rglob("*.py")
    cells = [cell for path in notebooks for cell in json.loads(path.read_text("utf-8"))["cells"]]
    texts = ["".join(cell["source"]) for cell in cells]
    shown = squeezed("\n".join(texts + [path.read_text("utf-8") for path in library]))
    lines = [line for cell in source.load(slug).cells for line in region(cell.text, marks)]
    return [line for line in lines if len(line) > SHORTEST and squeezed(line) not in shown]


def published(book) -> dict[str, str]:
    """Every text of the site but the solutions in their drop-downs, squeezed."""
    texts = {}
    for path in sorted(book.html.rglob("*")):
        if path.suffix in (".html", ".ipynb", ".md", ".txt", ".js", ".json") and "mathjax" not in (
            path.parts
        ):
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".html":
                text = visible_text(without_solutions(text))
            elif path.suffix == ".ipynb":
                cells = json.loads(text)["cells"]
                text = "\n".join("".join(cell["source"]) for cell in cells)
            texts[path.relative_to(book.html).as_posix()] = squeezed(text)
    return texts


@pytest.fixture(scope="module")
def texts(book) -> dict[str, str]:
    return published(book)


@pytest.mark.parametrize("slug", slugs())
def test_there_is_something_to_hide(slug):
    """Otherwise the tests below would pass for want of a secret."""
    assert len(secrets(slug, SOLUTION)) > 5
    assert len(secrets(slug, HIDDEN)) > 5


@pytest.mark.parametrize("slug", slugs())
def test_solutions_stand_in_their_drop_downs_only(slug, texts):
    lines = secrets(slug, SOLUTION)
    found = {n: [x for x in lines if squeezed(x) in text] for n, text in texts.items()}
    assert not {name: hits for name, hits in found.items() if hits}


@pytest.mark.parametrize("slug", slugs())
def test_solutions_do_stand_in_their_drop_downs(slug, book):
    """The same search must find them when the drop-downs are left in."""
    page = (book.html / "chapters" / f"{slug}.html").read_text(encoding="utf-8")
    text = squeezed(visible_text(page))
    chapter = source.load(slug)
    for exercise in chapter.exercises.values():
        for line in region(exercise.cell.text, SOLUTION):
            assert squeezed(line) in text


@pytest.mark.parametrize("slug", slugs())
def test_hidden_tests_stand_nowhere(slug, book, texts):
    # the key of a quiz is both: hidden in its test, and the solution in its drop-down
    solutions = secrets(slug, SOLUTION)
    lines = [line for line in secrets(slug, HIDDEN) if line not in solutions]
    assert lines
    whole = (book.html / "chapters" / f"{slug}.html").read_text(encoding="utf-8")
    everywhere = {**texts, "with drop-downs": squeezed(visible_text(whole))}
    found = {n: [x for x in lines if squeezed(x) in text] for n, text in everywhere.items()}
    assert not {name: hits for name, hits in found.items() if hits}


@pytest.mark.parametrize("slug", slugs())
def test_the_search_index_knows_no_word_of_a_solution(slug, book, texts):
    """The index holds single words: take those that no published text has."""
    lines = secrets(slug, SOLUTION) + secrets(slug, HIDDEN)
    words = set(re.findall(r"[a-z]{7,}", " ".join(lines).lower()))
    others = "".join(text for name, text in texts.items() if name != "searchindex.js").lower()
    index = (book.html / "searchindex.js").read_text(encoding="utf-8").lower()
    assert not [word for word in words if word not in others and f'"{word}"' in index]


def test_markers_of_the_source_stand_nowhere(texts):
    marks = [squeezed(mark) for mark in (*SOLUTION, *HIDDEN)]
    assert not {name for name, text in texts.items() if any(mark in text for mark in marks)}


def test_the_tag_that_skips_cells_stays_out_of_what_is_downloaded(book):
    """Stock nbgrader gives full marks to a test cell with this tag."""
    for path in (book.html / "_sources" / "chapters").glob("*.ipynb"):
        assert "skip-execution" not in path.read_text(encoding="utf-8")


def test_a_site_for_a_class_has_no_solutions(book):
    import course_site

    slug = slugs()[0]
    body = course_site.solution_slot(next(iter(source.load(slug).exercises)))
    assert "<details" in course_site.insert_solutions(body, slug, book.root, Plain(), True)
    assert course_site.insert_solutions(body, slug, book.root, Plain(), False) == ""


@pytest.fixture(scope="module")
def class_site():
    """The site that `build_book.py --class` builds, from the same run notebooks."""
    book = build_book.Book(solutions=False)
    build_book.build(book, strict=True, report=lambda line: None)
    return book.html


def test_the_site_of_a_class_has_no_solution_and_promises_none(class_site, book):
    pages = {path.stem: path.read_text("utf-8") for path in class_site.rglob("*.html")}
    assert not [name for name, page in pages.items() if '<details class="solution"' in page]
    promise = "solution under each exercise"
    assert promise not in pages["how-to-use"]
    assert promise in (book.html / "pages" / "how-to-use.html").read_text("utf-8")
    assert '<details class="hint"' in pages[slugs()[0]]


class Plain:
    """A highlighter that leaves text as it is."""

    def highlight_block(self, text: str, language: str) -> str:
        return f"<pre>{html.escape(text)}</pre>"
