"""The cells of a notebook, whatever happened to its JSON on the way, and what was repaired.

Only the text of cells and the fields that help to find an answer are kept.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

MOST_CELLS = 10_000
LONGEST_CELL = 200_000  # characters; Python takes a hundred bytes for each when it parses
LONGEST = 5_000_000  # characters of all cells together
MARKER = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)
AGAIN = "ask for it again"  # a teacher's way out of most of this, and a learner's
RESTORE = (
    "save it again from JupyterLab, go back to an earlier copy (File > Revert Notebook to "
    "Checkpoint), or paste your answers into a fresh copy of the chapter"
)
NOT_JSON = {  # what a file of another kind starts with
    b"%PDF": "a PDF",
    b"\x1f\x8b": "a gzip archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"PK\x03\x04": "a zip archive",
    b"<!DO": "a web page",
    b"<htm": "a web page",
    b"versi": "a pointer of git lfs, not the file itself",
}


class Unreadable(Exception):
    """A notebook that cannot be graded. The text is for the teacher, `for_learner` for its owner.

    Both say what is wrong, and each its own way out.
    """

    def __init__(self, what: str, teacher: str = AGAIN, learner: str = RESTORE):
        super().__init__(f"{what}; {teacher}")
        self.for_learner = f"{what}; {learner}"


@dataclass(frozen=True, slots=True)
class SentCell:
    """One cell of a submission; `number` counts from 1, as a reader counts in the notebook."""

    number: int
    kind: str  # code, markdown or raw
    source: str
    grade_id: str | None = None
    points: object = None
    tags: tuple[str, ...] = ()


@dataclass(slots=True)
class Sent:
    """A submission that could be read: its file, its cells, and one line for each repair."""

    path: Path
    cells: list[SentCell]
    notes: list[str] = field(default_factory=list)


def parse_notebook(data: bytes, path: Path) -> Sent:
    """The cells of a notebook with this content; `path` is for messages. Raises Unreadable."""
    notes: list[str] = []
    document = _parse(_decode(data, notes), data[:8], path.name)
    return Sent(path, _cells(document, path.name, notes), notes + _foreign(document))


def _decode(data: bytes, notes: list[str]) -> str:
    encoding = json.detect_encoding(data)
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        notes.append(f"the file starts with a byte order mark; read as {encoding}")
    elif encoding != "utf-8":
        notes.append(f"the file is not UTF-8; read as {encoding}")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        notes.append("the file is not UTF-8; damaged letters were replaced")
        return data.decode(encoding, errors="replace")


def _parse(text: str, start: bytes, name: str) -> dict:
    if not text.strip():
        raise Unreadable(f"{name} is empty")
    try:
        document = json.loads(text, parse_int=float)  # int() refuses numbers of 5000 digits
    except (ValueError, RecursionError, MemoryError) as error:
        raise _not_json(text, start, name, error) from None
    if not isinstance(document, dict):
        raise Unreadable(f"{name} is JSON, but not a notebook")
    return document


def _not_json(text: str, start: bytes, name: str, error: Exception) -> Unreadable:
    if MARKER.search(text):
        return Unreadable(
            f"{name} holds the marks of an unfinished git merge (<<<<<<<)",
            "ask for the merged notebook",
            "finish the merge first, or take one of its two sides: git checkout --ours FILE",
        )
    for mark, what in NOT_JSON.items():
        if start.startswith(mark):
            return Unreadable(f"{name} is not a notebook: it is {what}", "ask for the notebook")
    where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
    return Unreadable(f"{name} is not a notebook: it is not valid JSON{where}")


def _foreign(document: dict) -> list[str]:
    """A word on a notebook of another language than Python."""
    metadata = _dict(document.get("metadata"))
    spec, info = _dict(metadata.get("kernelspec")), _dict(metadata.get("language_info"))
    language = spec.get("language") or info.get("name") or spec.get("name")
    if not isinstance(language, str) or "py" in language.lower() or language == spec.get("name"):
        return []
    return [f"it was saved with a kernel for {language[:40]}; its cells were read as Python"]


# Its cells


def _cells(document: dict, name: str, notes: list[str]) -> list[SentCell]:
    raw = document.get("cells")
    sheets = document.get("worksheets")
    if raw is None and isinstance(sheets, list):
        notes.append("the notebook is in the old format 3; read all the same")
        raw = [cell for sheet in sheets for cell in _list(_dict(sheet).get("cells"))]
    if not isinstance(raw, list):
        raise Unreadable(f"{name} has no list of cells")
    if len(raw) > MOST_CELLS:
        raise Unreadable(f"{name} has {len(raw)} cells, at most {MOST_CELLS} are read")
    bad = [number for number, cell in enumerate(raw, 1) if not isinstance(cell, dict)]
    if bad and len(bad) == len(raw):
        raise Unreadable(f"cell {bad[0]} of {name} is not a cell, and no other is one")
    if bad:
        notes.append(f"not a cell, and passed over: {_listed(bad)}")
    cells = [_cell(n, cell, notes) for n, cell in enumerate(raw, 1) if isinstance(cell, dict)]
    if sum(len(cell.source) for cell in cells) > LONGEST:
        raise Unreadable(f"{name} holds more than {LONGEST} characters, outputs not counted")
    return cells


def _cell(number: int, raw: dict, notes: list[str]) -> SentCell:
    metadata = _dict(raw.get("metadata"))
    graded = _dict(metadata.get("nbgrader"))
    grade_id = graded.get("grade_id")
    kinds = {"code": "code", "markdown": "markdown", "heading": "markdown"}
    return SentCell(
        number=number,
        kind=kinds.get(str(raw.get("cell_type"))[:20], "raw"),
        source=_source(number, raw, notes),
        grade_id=grade_id if isinstance(grade_id, str) else None,
        points=graded.get("points"),
        tags=tuple(tag for tag in _list(metadata.get("tags")) if isinstance(tag, str)),
    )


def _source(number: int, raw: dict, notes: list[str]) -> str:
    told = raw.get("source", raw.get("input", ""))
    parts = _list(told) if isinstance(told, list) else [told]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        notes.append(f"cell {number}: what is no text was left out of it")
    bare = len(texts) > 1 and not any("\n" in text for text in texts)
    if bare:
        notes.append(f"cell {number}: its lines had lost their ends")
    source = ("\n" if bare else "").join(texts)
    if len(source) > LONGEST_CELL:
        notes.append(f"cell {number} has {len(source)} characters and was not read")
        return ""
    if "<<<<<<< " in source and MARKER.search(source):
        notes.append(f"cell {number} holds the marks of an unfinished git merge (<<<<<<<)")
    # A lone surrogate can be read, but never written again.
    return source.encode("utf-8", errors="replace").decode().replace("\r\n", "\n")


def _dict(value) -> dict:
    return value if isinstance(value, dict) else {}


def _list(value) -> list:
    return value if isinstance(value, list) else []


def _listed(numbers: list[int]) -> str:
    more = f" and {len(numbers) - 3} more" if len(numbers) > 3 else ""
    return f"cell {', '.join(map(str, numbers[:3]))}{more}"
