"""Two directives of the landing page.

`course-part` shows one part of the syllabus as cards. Its body holds a line a chapter,
`slug | title | promise`. A chapter becomes a link when the table of contents has it; until then it
stands there in plain text.

`matrices` shows small matrices side by side. Its body holds a line a matrix,
`formula | words | rows | look`, rows divided by semicolons, the look (given, weights, result) left
out for most.
"""

from html import escape
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective


class CoursePart(SphinxDirective):
    has_content = True
    option_spec: ClassVar[dict] = {"later": directives.unchanged}

    def run(self):
        cards = nodes.bullet_list(classes=["course-part"], bullet="*")
        for line in self.content:
            if line.strip():
                cards += self._card(*parse(line))
        return [cards]

    def _card(self, slug: str, title: str, promise: str) -> nodes.list_item:
        written = f"chapters/{slug}" in self.env.found_docs
        card = nodes.list_item(classes=["chapter-card", "written" if written else "unwritten"])
        head = nodes.paragraph(classes=["chapter-head"])
        head += nodes.inline("", str(int(slug.split("-")[0])), classes=["chapter-number"])
        head += nodes.Text(" ")
        if written:
            link = addnodes.pending_xref(
                refdomain="std",
                reftype="doc",
                reftarget=f"/chapters/{slug}",
                refexplicit=True,
                refwarn=True,
                refdoc=self.env.docname,
            )
            link += nodes.inline("", title, classes=["chapter-title"])
            head += link
        else:
            head += nodes.inline("", title, classes=["chapter-title"])
        card += head
        text = nodes.paragraph("", promise, classes=["chapter-promise"])
        if not written:
            text += nodes.Text(" ")
            text += nodes.inline("", self.options.get("later", "Later."), classes=["later"])
        card += text
        return card


class Matrices(SphinxDirective):
    has_content = True

    def run(self):
        row = nodes.container(classes=["matrices"])
        for line in self.content:
            if line.strip():
                row += self._matrix(*(part.strip() for part in line.split("|")))
        return [row]

    def _matrix(self, formula: str, words: str, rows: str, look: str = "") -> nodes.container:
        figure = nodes.container(classes=["matrix", *look.split()])
        caption = nodes.paragraph(classes=["matrix-name"])
        caption += nodes.math("", formula)
        figure += caption
        figure += nodes.paragraph("", words, classes=["matrix-words"])
        body = "".join(
            f"<tr>{''.join(_number(cell, look) for cell in row.split())}</tr>"
            for row in rows.split(";")
        )
        table = f'<table aria-label="{escape(words)}"><tbody>{body}</tbody></table>'
        figure += nodes.raw("", table, format="html")
        return figure


def _number(cell: str, look: str) -> str:
    # The stylesheet fills a weight's cell as far as the weight goes.
    shade = f' style="--w:{100 * float(cell):.0f}%"' if look == "weights" else ""
    return f"<td{shade}>{escape(cell)}</td>"


def parse(line: str) -> tuple[str, str, str]:
    """`02-attention | Title | Promise.` -> its three parts."""
    parts = tuple(part.strip() for part in line.split("|"))
    if len(parts) != 3:
        raise ValueError(f"a line of course-part is `slug | title | promise`, got {line!r}")
    return parts


def setup(app):
    app.add_directive("course-part", CoursePart)
    app.add_directive("matrices", Matrices)
