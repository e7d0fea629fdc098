"""The local Sphinx extension: offline maths, solution drop-downs, the student's own notebook.

It also mends what the theme writes, and marks outputs whose columns must not be wrapped.

Solutions are put into the finished HTML of a page and nowhere else, so no source file, doctree or
search index ever holds them. They come from `solutions/NN-slug.md`.
"""

import html
import importlib.util
import json
import re
import shutil
from functools import cache
from pathlib import Path

from sphinx.errors import ExtensionError

import api_docs
import course_parts
from site_copy import count, points_by_exercise, solution_slot

# What a page may ask of MathJax: the program, its TeX packages and fonts, the speech for screen
# readers. The whole package has 24 MB.
MATHJAX = (
    "tex-chtml.js",
    "input/tex/extensions/*.js",
    "output/chtml/fonts/woff-v2/*.woff",
    "a11y/*.js",
    "sre/mathmaps/base.json",
    "sre/mathmaps/en.json",
)

# The theme's markup, mended: (what it writes, what it should write). Each must be found on every
# page, so that a new version of the theme cannot undo this silently.
THEME = (
    # 1.5 MB of icons for which the theme's fonts suffice.
    (r'<script defer src="[^"]*fontawesome\.js[^"]*"></script>\s*', ""),
    # The sidebar was no landmark, so its search field belonged to none.
    (
        r'<div id="pst-primary-sidebar" ',
        '<div id="pst-primary-sidebar" role="complementary" aria-label="Course" ',
    ),
    # "auto" is no theme: until the theme's script has run, and for ever without JavaScript,
    # a page would have no colours.
    (r'(<html [^>]*data-theme=)"auto"', r'\1"light"'),
    (
        r'(dataset\.theme) = localStorage\.getItem\("theme"\) \|\| "auto"',
        r"\1 = document.documentElement.dataset.mode !== 'auto' ? "
        r"document.documentElement.dataset.mode : "
        r"matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'",
    ),
)

# The same for what only some pages have.
MARKUP = (
    # An old role, in a list whose items it hides.
    (re.compile(r' role="doc-biblioentry"'), ' role="listitem"'),
    # A summary's own words say more than this label, which hides them.
    (re.compile(r'(<summary) aria-label="Toggle hidden content"'), r"\1"),
)
# The parameters of a long signature are a list of descriptions without terms.
PARAMETERS = re.compile(r'(<dt class="sig [^>]*>)(.*?)(</dt>)', re.DOTALL)
# A name in the contents beside the page, which may be longer than that column.
CONTENTS = re.compile(r'(nav-link" href="#[^"]*"><code [^>]*><span class="pre">)([^<]*)')

BREAK = re.compile("(?<=[_.])|(?<=[a-z])(?=[A-Z])")  # where a long name may go on below

# A picture, with the link around it if there is one already.
PICTURE = re.compile(r'(<a [^>]*>)?(<img [^>]*src="([^"]*_images/[^"]*)"[^>]*>)')
# What a cell printed: (up to its class, from there to its text, text).
PRINTED = re.compile(
    r'(<div class="output (?:stream|text_plain)[^"]*)("[^>]*>\s*<div class="highlight"><pre>)'
    r"(.*?)(?=</pre>)",
    re.DOTALL,
)

# Written at the very end, so that the builder can tell warnings from a broken build.
FINISHED = ".finished"

SLOT = re.compile(re.escape(solution_slot("ID")).replace("ID", r"([\w-]+)"))


def setup(app):
    app.add_config_value("solutions", True, "html")
    app.add_config_value("course_root", "", "env")
    # Jupyter Book sets this for sphinx_comments, which we leave out: it loads scripts of others.
    app.add_config_value("comments_config", {}, "html")
    app.connect("config-inited", offline_maths)
    app.connect("config-inited", tell_pages)
    app.connect("html-page-context", fill_page, priority=900)
    app.connect("build-finished", finish)
    course_parts.setup(app)
    api_docs.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def offline_maths(app, config) -> None:
    config.mathjax_path = "mathjax/tex-chtml.js"


def tell_pages(app, config) -> None:
    """Let pages say `{only} solutions`."""
    if config.solutions:
        app.tags.add("solutions")


def fill_page(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Solutions and kickers for chapters; pictures that open; scripts only where they are used."""
    body = PICTURE.sub(_opening, context.get("body", ""))
    if body:
        context["body"] = body
    root = Path(app.config.course_root)
    if pagename.startswith("chapters/"):
        slug = pagename.removeprefix("chapters/")
        body = insert_solutions(body, slug, root, app.builder.highlighter, app.config.solutions)
        body = body.replace("<h1>", kicker(slug, root) + "<h1>", 1)
        body = PRINTED.sub(_marked, body)
        context["body"] = body
    if "<attention-explorer" not in body:
        scripts = context.get("script_files", [])
        context["script_files"] = [s for s in scripts if "attention-explorer" not in str(s)]


def _opening(match: re.Match) -> str:
    """A picture that opens alone when touched: on a phone it is too small to read in the page."""
    link, picture, address = match.groups()
    return match[0] if link else f'<a class="picture" href="{address}">{picture}</a>'


def _marked(match: re.Match) -> str:
    before, after, text = match.groups()
    plain = html.unescape(re.sub(r"<[^>]+>", "", text))
    return f"{before}{' aligned' if is_aligned(plain) else ''}{after}{text}"


def is_aligned(text: str) -> bool:
    """Whether lines of an output stand in columns: a table, or a tensor of several rows.

    Everything else may be wrapped where the page is narrow.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    in_columns = [line for line in lines if re.search(r"\S {2,}\S", line)]
    rows = [line for line in lines if re.match(r" +\[", line)]
    return len(lines) > 1 and (2 * len(in_columns) > len(lines) or 2 * len(rows) >= len(lines))


def insert_solutions(body: str, slug: str, root: Path, highlighter, wanted: bool) -> str:
    """The body with each slot filled, or emptied when solutions are not wanted."""
    if not wanted:
        return SLOT.sub("", body)
    solutions = solution_texts(slug, root)

    def fill(match: re.Match) -> str:
        kind, text = solutions[match[1]]
        inner = (
            f'<div class="highlight-ipython3 notranslate">'
            f"{highlighter.highlight_block(text, 'ipython3')}</div>"
            if kind == "code"
            else f'<div class="model-answer">{markdown(text)}</div>'
        )
        return (
            f'<details class="solution" data-exercise="{html.escape(match[1])}">'
            f"<summary>Solution</summary>{inner}</details>"
        )

    return SLOT.sub(fill, body)


@cache
def solution_texts(slug: str, root: Path) -> dict[str, tuple[str, str]]:
    """For each exercise of a chapter: `("code" or "markdown", solution)`."""
    from autograde.chapters import Course
    from autograde.source import load

    chapter = load(slug, Course(root))
    code = {one.id: ("code", one.cell.solution_text.strip()) for one in chapter.exercises.values()}
    return code | {one.id: ("markdown", one.solution_text.strip()) for one in chapter.written}


def markdown(text: str) -> str:
    """A model answer as HTML; formulas are left to MathJax."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(content: str, options: dict) -> str:
        left, right = (r"\[", r"\]") if options["display_mode"] else (r"\(", r"\)")
        formula = f"{left}{html.escape(content)}{right}"
        return f'<span class="math notranslate nohighlight">{formula}</span>'

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.use(dollarmath_plugin, renderer=formula)
    return reader.render(text)


def kicker(slug: str, root: Path) -> str:
    """The line above a chapter's title: its number and what its exercises are worth."""
    notebook = json.loads((root / "chapters" / f"{slug}.ipynb").read_text(encoding="utf-8"))
    points = points_by_exercise(notebook)
    what = f"Chapter {slug.split('-')[0]}"
    if points:
        what += f" · {count(len(points), 'exercise')} · {count(sum(points.values()), 'point')}"
    return f'<p class="kicker">{what}</p>'


def finish(app, exception) -> None:
    """After the pages are written: what Sphinx has no hook for."""
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    copy_mathjax(out / "_static" / "mathjax")
    for template in (out / "_static").glob("*webpack-macros.html"):
        template.unlink()
    for path in out.rglob("*.html"):
        path.write_text(mend(path.read_text(encoding="utf-8"), path.name), encoding="utf-8")
    for script in (out / "_static" / "scripts").glob("fontawesome.js*"):
        script.unlink()
    # The download button hands out what stands in _sources: the notebook that students solve.
    for path in (out / "_sources" / "chapters").glob("*.ipynb"):
        shutil.copyfile(Path(app.config.course_root) / "chapters" / path.name, path)
    (out / FINISHED).touch()


def copy_mathjax(target: Path) -> None:
    """Copy the needed files out of the package `sphinx-mathjax-offline`."""
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    if package is None:
        raise ExtensionError("sphinx-mathjax-offline is missing; pip install -e '.[book]'")
    source = Path(package.submodule_search_locations[0]) / "static" / "mathjax"
    for pattern in MATHJAX:
        if not (found := sorted(source.glob(pattern))):
            raise ExtensionError(f"sphinx-mathjax-offline has no {pattern}; pin its version")
        for path in found:
            copied = target / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)


def mend(page: str, name: str) -> str:
    """One page with the theme's markup mended. Raises when there is nothing to mend."""
    for pattern, replacement in THEME:
        page, times = re.subn(pattern, replacement, page)
        if not times:
            raise ExtensionError(f"{name} has no {pattern!r}: the theme changed, so look again")
    for pattern, replacement in MARKUP:
        page = pattern.sub(replacement, page)
    page = CONTENTS.sub(lambda name: name[1] + re.sub(BREAK, "<wbr>", name[2]), page)
    return PARAMETERS.sub(lambda dt: dt[1] + _lines(dt[2]) + dt[3], page)


def _lines(signature: str) -> str:
    """A signature with its parameters in plain lines."""
    for tag, name in (("dl", "sig-parameters"), ("dd", "sig-line")):
        signature = signature.replace(f"<{tag}>", f'<span class="{name}">')
        signature = signature.replace(f"</{tag}>", "</span>")
    return signature
