"""Make a chapter's Markdown readable where MyST is not known: JupyterLab, VS Code, Colab.

The site understands citations, cross references and pictures in `_static/`; a notebook that was
downloaded alone understands none of them. So the student notebook gets words, and pictures inside
its text, in their place; the site's copy gets the source's text back (`build.site_texts`).
"""

import base64
import re
from functools import cache
from pathlib import Path

LABEL = re.compile(r"\A\(([a-z0-9-]+)\)=\n")
CITATION = re.compile(r"\{cite:([pt])\}`([^`]+)`")
REFERENCE = re.compile(r"\{(?:doc|ref|term|numref)\}`([^`<]+?)\s*<[^`>]+>`")
BARE_REFERENCE = re.compile(r"\{(?:doc|ref|term|numref|eq)\}`([^`<]+)`")
PICTURE = re.compile(r"!\[([^\]]*)\]\((?:\.\./)?(_static/[^)]+)\)")
KINDS = {".svg": "image/svg+xml", ".png": "image/png"}


def plain(text: str, root: Path) -> str:
    """The text in plain Markdown, with its pictures inside."""

    def embed(found: re.Match) -> str:
        # Not an attachment of the cell: JupyterLab shows no SVG that is attached.
        path = root / found[2]
        if not path.is_file():
            raise ValueError(f"the picture {found[2]} does not exist; draw it, or mend its name")
        if path.suffix not in KINDS:
            raise ValueError(f"the picture {found[2]} is none of {', '.join(KINDS)}; convert it")
        data = base64.b64encode(path.read_bytes()).decode()
        return f"![{found[1]}](data:{KINDS[path.suffix]};base64,{data})"

    def cite(found: re.Match) -> str:
        names = [_author_and_year(key.strip(), root) for key in found[2].split(",")]
        if found[1] == "t":
            return " and ".join(f"{authors} ({year})" for authors, year in names)
        return "(" + "; ".join(f"{authors}, {year}" for authors, year in names) + ")"

    text = LABEL.sub("", text)
    text = CITATION.sub(cite, text)
    text = REFERENCE.sub(r"\1", text)
    if found := BARE_REFERENCE.search(text):
        raise ValueError(
            f"{found[0]} has no words of its own, which a notebook needs; "
            "write it as {ref}`words <target>`"
        )
    return PICTURE.sub(embed, text)


def _author_and_year(key: str, root: Path) -> tuple[str, str]:
    entries = _bibliography(root / "references.bib")
    if key not in entries:
        raise ValueError(f"the citation {key!r} is not in references.bib; add it there")
    return entries[key]


@cache
def _bibliography(path: Path) -> dict[str, tuple[str, str]]:
    from pybtex.database import parse_file
    from pybtex.exceptions import PybtexError
    from pybtex.richtext import Text

    entries = {}
    try:
        parsed = parse_file(str(path)).entries
    except (PybtexError, OSError, UnicodeError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{path.name} cannot be read: {said}; mend it there") from None
    for key, entry in parsed.items():
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        last = [str(Text.from_latex(" ".join(p.prelast_names + p.last_names))) for p in people]
        authors = f"{last[0]} et al." if len(last) > 2 else " and ".join(last) or key
        entries[key] = (authors, entry.fields.get("year", "no year"))
    return entries
