"""Build the notebooks of a chapter from its source: the instructor's and the students'.

The student notebook goes through nbgrader's own generate_assignment, so that its metadata and
checksums are nbgrader's, and is the same byte for byte on every run: cell ids come from the grade
ids, no times, no versions of the machine.
"""

import hashlib
import logging
import re
import tempfile
import warnings
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograde.chapters import Course
from autograde.environment import programs_on_path
from autograde.plain_markdown import plain
from autograde.source import Chapter, load
from autograde.source_cells import STUB, Cell, SourceError

KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
TEXT_STUB = "*Write your answer here.*"
SHOWN = ("role", "exercise", "test", "tier", "kind", "title", "minutes", "points", "hint")


def instructor_notebook(chapter: Chapter) -> NotebookNode:
    """Everything: solutions, hidden tests, and nbgrader's metadata on each graded cell."""
    return new_notebook(cells=[_cell(cell, chapter) for cell in chapter.cells], metadata=KERNEL)


def student_notebook(chapter: Chapter) -> NotebookNode:
    """What students get, made by nbgrader in a scratch course and taken out again."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "source", chapter.slug, f"{chapter.slug}.ipynb")
        source.parent.mkdir(parents=True)
        nbformat.write(instructor_notebook(chapter), source)
        _generate_assignment(Path(scratch), chapter.slug)
        released = Path(scratch, "release", chapter.slug, source.name)
        notebook = nbformat.read(released, as_version=4)
    notebook.metadata = NotebookNode(KERNEL)
    for cell in notebook.cells:
        if cell.metadata.get("plainformer", {}).get("role") in ("exercise", "test"):
            # Run All reaches the end of an unfilled notebook. The tag means nothing to the grader.
            cell.metadata.tags = ["raises-exception"]
    return notebook


def student_bytes(chapter: Chapter) -> bytes:
    """The student notebook as it stands in `chapters/`, byte for byte."""
    return (nbformat.writes(student_notebook(chapter)).rstrip() + "\n").encode()


def release(slug: str, course: Course | None = None) -> bool:
    """Write `chapters/NN-slug.ipynb`; True when that changed the file."""
    course = course or Course()
    new = student_bytes(load(slug, course))
    path = course.notebook(slug)
    if path.exists() and path.read_bytes() == new:
        return False
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(new)
    return True


def site_texts(chapter: Chapter) -> dict[str, str]:
    """For the site's copy: the source's own Markdown by cell id, with citations and labels."""
    return {
        _cell_id(cell, chapter): _folded(cell, cell.text) if cell.role == "hint" else cell.text
        for cell in chapter.cells
        if cell.kind == "markdown" and cell.role in ("text", "hint")
    }


def _cell(cell: Cell, chapter: Chapter) -> NotebookNode:
    node = _code_or_markdown(cell, chapter)
    node.metadata.update({k: v for k, v in cell.header.items() if k in ("tags", "mystnb")})
    if cell.role != "text":
        shown = {key: cell.header[key] for key in SHOWN if key in cell.header}
        if cell.role == "test":
            shown["exercise"] = _owner(cell, chapter)
        node.metadata["plainformer"] = {**shown, "role": cell.role}
    if cell.role in ("setup", "exercise", "test", "written"):
        node.metadata["nbgrader"] = _nbgrader(cell)
    return node


def _code_or_markdown(cell: Cell, chapter: Chapter) -> NotebookNode:
    ident = _cell_id(cell, chapter)
    if cell.kind == "code":
        return new_code_cell(cell.text, id=ident)
    try:
        text = plain(cell.text, chapter.path.parent.parent)
    except ValueError as error:
        raise SourceError(f"{chapter.path.name}, cell {cell.index}: {error}") from None
    return new_markdown_cell(_folded(cell, text) if cell.role == "hint" else text, id=ident)


def _owner(cell: Cell, chapter: Chapter) -> str:
    return next(one.id for one in chapter.exercises.values() if cell in one.tests)


def _nbgrader(cell: Cell) -> dict:
    """nbgrader's metadata, schema 3: which cells are filled in, which are locked and graded."""
    graded = cell.role in ("test", "written")
    marks = {"points": float(cell.header["points"])} if graded else {}
    return {
        "schema_version": 3,
        "grade_id": cell.id,
        "grade": graded,
        "solution": cell.role in ("exercise", "written"),
        "locked": cell.role in ("setup", "test"),
        "task": False,
        **marks,
    }


def _folded(cell: Cell, text: str) -> str:
    number = cell.header.get("hint", 1)
    return f'<details class="hint">\n<summary>Hint {number}</summary>\n\n{text}\n\n</details>'


def _cell_id(cell: Cell, chapter: Chapter) -> str:
    """A notebook cell id of at most 64 characters: the grade id, or a digest of text and place."""
    if cell.role in ("exercise", "test", "written"):
        return re.sub(r"[^a-zA-Z0-9-_]", "-", cell.id)[:64]
    same_before = sum(other.text == cell.text for other in chapter.cells[: cell.index])
    digest = hashlib.sha256(f"{cell.text}\n{same_before}".encode()).hexdigest()
    return f"{cell.role}-{digest[:12]}"


def _generate_assignment(root: Path, slug: str) -> None:
    """Run nbgrader's generate_assignment in a scratch course, with its texts set to ours."""
    with programs_on_path(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nbgrader and its database layer, none of ours
        from nbgrader.apps import NbGraderAPI
        from traitlets.config import Config

        config = Config()
        config.CourseDirectory.root = str(root)
        config.CourseDirectory.db_url = f"sqlite:///{root / 'gradebook.db'}"
        config.ClearSolutions.code_stub = {"python": STUB}
        config.ClearSolutions.text_stub = TEXT_STUB
        config.ClearSolutions.enforce_metadata = True
        config.GenerateAssignment.create_assignment = True
        api = NbGraderAPI(config=config)
        api.log.setLevel(logging.CRITICAL)
        outcome = api.generate_assignment(slug, force=True, create=True)
        api.gradebook.close()
    if not outcome["success"]:
        raise RuntimeError(f"nbgrader could not release {slug}:\n{outcome.get('log', outcome)}")
