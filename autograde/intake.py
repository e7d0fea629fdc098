"""Read what a student sent, whatever happened to the file on its way, and say what was repaired.

Only the text of cells and the fields that help to find an answer are kept. Nothing of the
submission is changed on disk.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

LARGEST = 100 * 2**20  # bytes; a notebook with a few figures has one hundredth of that
MARKER = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)


AGAIN = "ask for it again"  # a teacher's way out of most of this, and a learner's
RESTORE = (
    "save it again from JupyterLab, go back to an earlier copy (File > Revert Notebook to "
    "Checkpoint), or paste your answers into a fresh copy of the chapter"
)


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


def find_notebook(folder: Path, name: str) -> tuple[Path, list[str]]:
    """The notebook in a student's folder: the one with the right name, else the only one.

    Links are never followed: a link could point at the solutions. Raises Unreadable.
    """
    files = sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    links = [p.name for p in files if p.is_symlink()]
    notebooks = [
        p for p in files if p.suffix.lower() == ".ipynb" and not p.is_symlink() and p.is_file()
    ]
    notes = [f"{link} is a link and was not followed" for link in links]
    exact = [p for p in notebooks if p.name == f"{name}.ipynb"]
    if exact:
        others = ", ".join(p.name for p in notebooks if p not in exact)
        return exact[0], notes + ([f"also sent, and not graded: {others}"] if others else [])
    if len(notebooks) == 1:
        return notebooks[0], [*notes, f"the file is called {notebooks[0].name}, not {name}.ipynb"]
    if notebooks:
        found = ", ".join(p.name for p in notebooks)
        raise Unreadable(
            f"none of the {len(notebooks)} notebooks is called {name}.ipynb ({found})",
            "rename the one to grade",
        )
    found = ", ".join(p.name for p in files) or "nothing"
    raise Unreadable(f"there is no notebook {name}.ipynb in the folder, only {found}", "ask for it")


def read_notebook(path: Path) -> Sent:
    """The cells of a notebook file. Raises Unreadable with a reason that its reader can act on."""
    size = path.stat().st_size
    if size > LARGEST:
        raise Unreadable(
            f"{path.name} has {size / 2**20:.0f} MiB, at most {LARGEST / 2**20:.0f} are read",
            "ask for a copy with the outputs cleared",
            "clear the outputs (Edit > Clear Outputs of All Cells) and save it",
        )
    notes: list[str] = []
    document = _parse(_decode(path.read_bytes(), notes), path.name)
    cells = [
        _cell(number, raw, path.name) for number, raw in enumerate(_cells(document, path, notes), 1)
    ]
    return Sent(path, cells, notes)


def _decode(data: bytes, notes: list[str]) -> str:
    for mark, encoding in [
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ]:
        if data.startswith(mark):
            notes.append(f"the file starts with a byte order mark; read as {encoding}")
            return data.decode(encoding, errors="replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        notes.append("the file is not UTF-8; damaged letters were replaced")
        return data.decode(errors="replace")


def _parse(text: str, name: str) -> dict:
    if not text.strip():
        raise Unreadable(f"{name} is empty")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        if MARKER.search(text):
            raise Unreadable(
                f"{name} holds the marks of an unfinished git merge (<<<<<<<)",
                "ask for the merged notebook",
                "finish the merge first, or take one of its two sides: git checkout --ours FILE",
            ) from None
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise Unreadable(f"{name} is not a notebook: it is not valid JSON{where}") from None
    if not isinstance(document, dict):
        raise Unreadable(f"{name} is JSON, but not a notebook")
    return document


def _cells(document: dict, path: Path, notes: list[str]) -> list:
    cells = document.get("cells")
    sheets = document.get("worksheets")
    if cells is None and isinstance(sheets, list):
        notes.append("the notebook is in the old format 3; read all the same")
        cells = [c for s in sheets if isinstance(s, dict) for c in s.get("cells") or []]
    if not isinstance(cells, list):
        raise Unreadable(f"{path.name} has no list of cells")
    return cells


def _cell(number: int, raw, name: str) -> SentCell:
    if not isinstance(raw, dict):
        raise Unreadable(f"cell {number} of {name} is not a cell")
    source = raw.get("source", raw.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    # A lone surrogate can be read, but never written again.
    source = str(source).encode("utf-8", errors="replace").decode().replace("\r\n", "\n")
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    graded = metadata.get("nbgrader")
    graded = graded if isinstance(graded, dict) else {}
    grade_id, tags = graded.get("grade_id"), metadata.get("tags")
    return SentCell(
        number=number,
        kind={"code": "code", "markdown": "markdown"}.get(str(raw.get("cell_type")), "raw"),
        source=source,
        grade_id=grade_id if isinstance(grade_id, str) else None,
        points=graded.get("points"),
        tags=tuple(str(t) for t in tags) if isinstance(tags, list) else (),
    )
