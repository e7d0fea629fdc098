"""All written answers to one exercise on a page, side by side, with the rubric on top."""

import re
from collections.abc import Mapping, Sequence
from html import escape

import mistune

from autograde.marking_sheet import Answer
from autograde.page_style import whole_page
from autograde.source_cells import Cell

STYLE = """
main { max-width: 110rem; }
.question { max-width: 46rem; }
.answers { display: grid; gap: 1rem; padding: 0; list-style: none;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
.answers > li { border: 1px solid var(--line); padding: 0 .75rem .75rem; }
.answers h2 { margin: .5rem 0; font-family: ui-monospace, monospace; }
.as-written { white-space: pre-wrap; overflow-wrap: anywhere; }
@media print { .answers > li { break-inside: avoid; } }
"""
BODY = """<h1>{title}</h1>
<div class="question">
{question}
<p><strong>{points:g} points.</strong> Points and comments go into the sheet beside this page.</p>
<details><summary>Comments that have a key</summary><dl>{bank}</dl></details>
</div>
<p>{count}</p>
<ul class="answers">
{answers}
</ul>"""


def marking_page(
    cell: Cell, question: str, bank: Mapping[str, str], found: Sequence[Answer]
) -> str:
    """The page of one exercise; it says of nobody who they are."""
    title = escape(cell.header.get("title", cell.id))
    body = BODY.format(
        title=title,
        question=_as_html(question),
        points=cell.header["points"],
        bank="".join(f"<dt>#{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in bank.items()),
        count=f"{len(found)} answer{'s' * (len(found) != 1)}, in no order that means anything.",
        answers="\n".join(
            f'<li><h2>{answer.id}</h2><div class="as-written">{escape(answer.text)}</div></li>'
            for answer in found
        ),
    )
    return whole_page(f"{title}: answers", body, STYLE)


def _as_html(markdown: str) -> str:
    """Our own text, without its heading: the title stands on the page already."""
    return mistune.create_markdown()(re.sub(r"^#+ .*\n+", "", markdown))
