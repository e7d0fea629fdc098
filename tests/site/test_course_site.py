"""The Sphinx extension: solutions, the theme mended, docstrings and the syllabus."""

import re

import pytest
from sphinx.errors import ExtensionError
from sphinx.highlighting import PygmentsBridge

import api_docs
import build_book
import course_parts
import course_site
from tests.site import sample


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return sample.make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def body(course):
    slots = course_site.solution_slot("90-distance") + course_site.solution_slot("90-why")
    highlighter = PygmentsBridge("html", "default")
    return course_site.insert_solutions(slots, "90-sample", course, highlighter, True)


def test_a_solution_is_folded_and_highlighted(body):
    assert '<details class="solution" data-exercise="90-distance"><summary>Solution' in body
    assert "<details open" not in body
    assert '<span class="k">return</span>' in body
    assert "copysign" in body


def test_markers_and_hidden_tests_are_not_part_of_a_solution(body):
    assert "###" not in body
    assert "1234.5" not in body


def test_a_model_answer_is_read_as_markdown_with_formulas(body):
    assert "<strong>length</strong>" in body
    assert r'<span class="math notranslate nohighlight">\(\lvert x \rvert \ge 0\)</span>' in body


def test_an_unknown_exercise_is_not_passed_over(course):
    with pytest.raises(KeyError, match="90-unknown"):
        course_site.insert_solutions(
            course_site.solution_slot("90-unknown"), "90-sample", course, None, True
        )


def test_html_in_a_model_answer_stays_text():
    assert "<script>" not in course_site.markdown("<script>alert(1)</script>")


def test_the_kicker_counts_exercises_and_points(course):
    assert "Chapter 90 · 2 exercises · 6 points" in course_site.kicker("90-sample", course)


def test_mathjax_is_copied_from_the_package(tmp_path):
    course_site.copy_mathjax(tmp_path)
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {"tex-chtml.js", "MathJax_Main-Regular.woff", "boldsymbol.js", "en.json"} <= names
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 6e6


def test_a_theme_that_changed_is_noticed():
    with pytest.raises(ExtensionError, match=r"page\.html"):
        course_site.mend("<html></html>", "page.html")


def test_a_picture_becomes_a_link_to_itself_once():
    picture = '<img alt="A line" src="../_images/a.svg" />'
    opened = course_site.PICTURE.sub(course_site._opening, f"<p>{picture}</p>")
    assert opened == f'<p><a class="picture" href="../_images/a.svg">{picture}</a></p>'
    assert course_site.PICTURE.sub(course_site._opening, opened) == opened


@pytest.mark.parametrize(
    ("printed", "aligned"),
    [
        ("sum over b      (5, 6)\nmean over t     (2, 6)\n", True),
        ("tensor([[1., 2.],\n        [3., 4.]])\n", True),
        ("one line  with a gap\n", False),
        ("A message that goes on for long.\n  expected 3  in  [3, 1]\n  Next: count.\n", False),
        ("", False),
    ],
)
def test_columns_are_told_from_sentences(printed, aligned):
    assert course_site.is_aligned(printed) is aligned


def test_only_outputs_in_columns_are_marked():
    output = '<div class="output stream highlight-myst-ansi"><div class="highlight"><pre>{}</pre>'
    table = output.format("<span></span>a   1\nb   2\n")
    assert 'class="output stream highlight-myst-ansi aligned"' in course_site.PRINTED.sub(
        course_site._marked, table
    )
    words = output.format("a sentence\nand another\n")
    assert course_site.PRINTED.sub(course_site._marked, words) == words


# Docstrings ----------------------------------------------------------------------------------


def rst(text: str) -> str:
    return "\n".join(api_docs.to_rst(text.splitlines()))


def test_formulas_become_directives_and_roles():
    result = rst("A sum.\n\n$$ a + b $$\n\nHere $d_k$ is `d_head`.")
    assert "\n.. math::\n\n   a + b\n" in result
    assert ":math:`d_k` is `d_head`" in result
    assert "\n.. math::\n\n   a + b\n" in rst("A sum.\n\n$$ a +\nb $$\n\nMore.")
    assert "\n.. math::\n\n   a + b\n\n\nMore." in rst("$$\na + b\n$$\n\nMore.")


def test_notes_become_fields_of_their_own():
    result = rst("Sentence.\nSource: One et al.\n2017, eq. 1.\nPaper to code: x is `x`.")
    assert "Sentence.\n\n:Source: One et al.\n   2017, eq. 1.\n:Paper to code: x is `x`." in result


def test_doctests_are_set_off_and_left_alone():
    result = rst("A sentence.\n>>> f(a_) | g\n{'a_'}\n\nMore | text.")
    assert "A sentence.\n\n>>> f(a_) | g\n{'a_'}\n\nMore \\| text." in result


def test_indented_paragraphs_stand_as_they_are():
    result = rst("An object,\n\n    {'a_': \"b\"}\n    more | signs\n\nand a | sentence.")
    assert "An object,\n\n\n::\n\n    {'a_': \"b\"}\n    more | signs\n\nand a \\| s" in result


def test_signs_that_rst_would_read_are_escaped_outside_of_code():
    assert rst("atol + |want| for `a_|b` and names_ .").startswith(
        "atol + \\|want\\| for `a_|b` and names\\_ ."
    )


def test_signatures_are_those_of_the_source():
    from plainformer.attention import dot_product_attention

    signature, returns = api_docs.signature_from_source(
        None, "function", "f", dot_product_attention, None, "(q, k)", None
    )
    assert "q: Float[Tensor, '*batch t d_head']" in signature
    assert "jaxtyping" not in signature
    assert returns == "Float[Tensor, '*batch t d_value']"


def test_what_has_no_source_keeps_its_signature():
    assert api_docs.signature_from_source(
        None, "function", "len", len, None, "(obj: torch.Tensor)", "int"
    ) == ("(obj: Tensor)", "int")


def test_the_reference_lists_every_module_that_readers_use():
    root = build_book.ROOT / "lib" / "plainformer"
    page = (build_book.ROOT / "pages" / "library.md").read_text("utf-8")
    # mistakes: wrong on purpose; the others: texts, commands, kernels, downloads; not for calling
    unlisted = {"plainformer.messages", "plainformer.cli", "plainformer.data.wheels"}
    own = ("triton_kernels", "occupancy", "bench", "try_triton")
    unlisted |= {f"plainformer.flash.{name}" for name in own}
    for path in root.rglob("*.py"):
        name = ".".join(("plainformer", *path.relative_to(root).with_suffix("").parts))
        name = name.removesuffix(".__init__")
        if "mistakes" in path.parts or name in unlisted:
            continue
        package = name.rpartition(".")[0]
        listed = f"automodule:: {name}\n" in page or f"automodule:: {package}\n" in page
        assert listed or path.name == "__init__.py", f"pages/library.md does not list {name}"


def imports_of_the_reference() -> str:
    page = (build_book.ROOT / "pages" / "library.md").read_text("utf-8")
    return "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))


def test_the_import_lines_of_the_reference_run():
    exec(imports_of_the_reference(), {})


def test_everything_in_the_reference_has_its_import_line(page, site):
    names = {}
    exec(imports_of_the_reference(), names)
    page.goto(f"{site}/pages/library.html")
    shown = page.locator("section > dl.py > dt.sig").evaluate_all("all => all.map((dt) => dt.id)")
    assert len(shown) > 20
    for full in shown:
        name = full.rpartition(".")[2]
        assert name in names or hasattr(names["check"], name), full


# The syllabus --------------------------------------------------------------------------------


def test_a_line_of_the_syllabus_has_three_parts():
    assert course_parts.parse("02-attention | Title | Promise.") == (
        "02-attention",
        "Title",
        "Promise.",
    )
    with pytest.raises(ValueError, match=r"slug \| title \| promise"):
        course_parts.parse("02-attention | Title")
