"""Find the written answers of a submission: by their label, else by their place."""

from nbformat import NotebookNode

from autograde.build import STUB, TEXT_STUB, instructor_notebook
from autograde.notebook import Sent
from autograde.source import Chapter
from autograde.source_cells import HIDDEN, SOLUTION, Cell, cut

_MADE: dict[tuple, list[str]] = {}


def released_text(node: NotebookNode) -> str:
    """What students get for a cell of the instructor's notebook: no solution, no hidden test."""
    stub = STUB if node.cell_type == "code" else TEXT_STUB
    return cut(cut(node.source, HIDDEN, None), SOLUTION, stub)


def written_answers(sent: Sent, chapter: Chapter, notes: list[str]) -> dict[str, str]:
    """Written answer -> the learner's text, where there is one; repairs are added to `notes`."""
    found: dict[str, str] = {}
    if not chapter.written:
        return found
    given = given_texts(chapter)
    labels = {cell.id for cell in chapter.written}
    for cell in chapter.written:
        stub = given[cell.index]
        labelled = [sent_cell for sent_cell in sent.cells if sent_cell.grade_id == cell.id]
        texts = [c.source for c in labelled if plain(c.source) not in ("", stub)]
        if not texts:
            texts = _between(cell, sent, given, labels)
            texts = [text for text in texts if plain(text) not in ("", stub)]
            texts = ["\n\n".join(texts)] if texts else []
            if texts:
                notes.append(f"{cell.id}: the answer was found by its place")
        elif len(texts) > 1:
            notes.append(f"{cell.id}: filled in {len(texts)} times; the last one counts")
        if texts:
            found[cell.id] = texts[-1]
    return found


def given_texts(chapter: Chapter) -> list[str]:
    """What students get for each cell; made once a chapter, because it takes long to make."""
    key = (chapter.path, *(cell.text for cell in chapter.cells))
    if key not in _MADE:
        _MADE[key] = [plain(released_text(node)) for node in instructor_notebook(chapter).cells]
    return _MADE[key]


def _between(written: Cell, sent: Sent, given: list[str], labels: set[str]) -> list[str]:
    """The learner's text between the given cells that stand before and after a written answer."""
    before, after = given[written.index - 1], given[written.index + 1 :][:1]
    texts, inside = [], False
    for cell in sent.cells:
        text = plain(cell.source)
        if text == before:
            inside, texts = True, []
        elif [text] == after:
            break
        elif inside and text in given:
            inside = False
        elif inside and cell.kind != "code" and cell.grade_id not in labels:
            texts.append(cell.source)
    return texts


def plain(text: str) -> str:
    """For comparing texts: layout does not count."""
    return " ".join(text.split())
