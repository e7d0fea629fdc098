"""The autograded notebook, as a teacher sees it in formgrader.

It is rebuilt from the instructor's, with the learner's answers and our verdicts put in, so nothing
that a submission says about points or tests can reach the gradebook.
"""

import re
from collections.abc import Mapping

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_output

from autograde.build import instructor_notebook
from autograde.extract import Extracted
from autograde.run import Verdict
from autograde.source import Chapter
from autograde.written import released_text


def autograded_notebook(
    chapter: Chapter, found: Extracted, verdicts: Mapping[str, Verdict]
) -> NotebookNode:
    """The instructor's notebook with this learner's answers, and our verdicts as outputs."""
    from nbgrader.utils import compute_checksum

    notebook = instructor_notebook(chapter)
    for node in notebook.cells:
        meta = node.metadata.get("nbgrader")
        if meta is None:
            continue
        ident = meta.grade_id
        if meta.solution:
            node.source = stub = released_text(node)
            meta.checksum = compute_checksum(node)  # of the stub: nbgrader's mark of a blank answer
            written = {one: harmless(text) for one, text in found.written.items()}
            node.source = {**found.answers, **written}.get(ident, stub)
        else:
            meta.checksum = compute_checksum(node)
        if ident in verdicts:
            node.outputs = _outputs(verdicts[ident])
    if found.extra:
        _insert_helpers(notebook, found.extra)
    return notebook


def harmless(markdown: str) -> str:
    """A learner's text without tags, named links or pictures: one space breaks each of them.

    nbgrader's own pages render it as it is, in the browser of whoever grades: a tag could run a
    script there, a link could hold one, a picture could call home.
    """
    return re.sub(r"<(?=[A-Za-z/!?])", "< ", markdown).replace("](", "] (").replace("]:", "] :")


def _outputs(verdict: Verdict) -> list[NotebookNode]:
    """What nbgrader reads a score from: nothing for a pass, an error for anything else."""
    if verdict.state == "pass":
        return []
    text = verdict.message or verdict.state
    return [new_output("error", ename=verdict.state, evalue=text, traceback=[text])]


def _insert_helpers(notebook: NotebookNode, extra: tuple[str, ...]) -> None:
    """Show the teacher the learner's own cells, after the setup, where they were run."""
    roles = [cell.metadata.get("plainformer", {}).get("role") for cell in notebook.cells]
    place = 1 + max((i for i, role in enumerate(roles) if role == "setup"), default=-1)
    notebook.cells[place:place] = [
        new_code_cell(source, id=f"added-{number}") for number, source in enumerate(extra, 1)
    ]
