"""Which section of its chapter a cell lies in, and where the built book has it."""

import re
import unicodedata
from dataclasses import dataclass

from autograde.source import Chapter
from autograde.source_cells import Cell

HEADING = re.compile(r"(?:^\((?P<label>[^)\n]+)\)=\n)?^## (?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a chapter under a heading of its own. `number` counts them from 1."""

    slug: str
    number: int
    title: str
    anchor: str

    def address(self, book: str) -> str:
        """Its place in the book that is published at this address."""
        return f"{book.rstrip('/')}/chapters/{self.slug}.html#{self.anchor}"


def section_of(chapter: Chapter, cell: Cell) -> Section | None:
    """The section that explains what this cell asks for; None before the first heading."""
    found = [
        heading
        for other in chapter.cells
        if other.kind == "markdown" and other.index <= cell.index
        for heading in HEADING.finditer(other.text)
    ]
    if not found:
        return None
    title = found[-1]["title"].strip()
    anchor = _anchor(found[-1]["label"] or title)
    return Section(chapter.slug, len(found), _plain(title), anchor)


def _plain(title: str) -> str:
    return title.replace("`", "")


def _anchor(text: str) -> str:
    """The id that docutils makes of a heading or a label (`docutils.nodes.make_id`)."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", plain.lower()))
