"""The autograded notebook, as a teacher sees it in formgrader.

It is rebuilt from the instructor's, with the learner's answers and our verdicts put in, so nothing
that a submission says about points or tests can reach the gradebook.
"""

import re
from collections.abc import Mapping

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_output, writes

from autograde.build import instructor_notebook
from autograde.extract import Extracted
from autograde.run import Verdict
from autograde.source import Chapter
from autograde.written import released_text


class Template:
    """The instructor's notebook, ready for any learner's answers: building it costs, filling not.

    A cell that the learner fills in holds the stub, and nbgrader's checksum of the stub, which is
    its mark of a blank answer. Cells that nobody fills in are kept as text.
    """

    def __init__(self, chapter: Chapter):
        from nbgrader.utils import compute_checksum

        notebook = instructor_notebook(chapter)
        self._cells = notebook.cells
        for node in self._cells:
            if (meta := node.metadata.get("nbgrader")) is not None:
                node.source = released_text(node) if meta.solution else node.source
                meta.checksum = compute_checksum(node)
        roles = [cell.metadata.get("plainformer", {}).get("role") for cell in self._cells]
        self._after_setup = 1 + max((i for i, r in enumerate(roles) if r == "setup"), default=-1)
        self._frame = NotebookNode({**notebook, "cells": []})
        self._head, _, self._tail = writes(self._frame).partition("[]")
        self._texts = [self._text(node) for node in self._cells]

    def filled(self, found: Extracted, verdicts: Mapping[str, Verdict]) -> str:
        """The notebook of one learner, as nbformat writes it."""
        answers = found.answers | {one: harmless(text) for one, text in found.written.items()}
        texts = list(self._texts)
        for place, node in enumerate(self._cells):
            ident = node.metadata.get("nbgrader", {}).get("grade_id")
            if ident in answers and node.metadata.nbgrader.solution:
                texts[place] = self._text(NotebookNode({**node, "source": answers[ident]}))
            elif ident in verdicts:
                outputs = _outputs(verdicts[ident])
                texts[place] = self._text(NotebookNode({**node, "outputs": outputs}))
        # The learner's own cells, where they were run.
        texts[self._after_setup : self._after_setup] = [
            self._text(new_code_cell(source, id=f"added-{number}"))
            for number, source in enumerate(found.extra, 1)
        ]
        cells = ",\n".join(texts)
        return f"{self._head}[\n{cells}\n ]{self._tail}"

    def _text(self, cell: NotebookNode) -> str:
        """One cell as it stands in the file: a notebook of one cell, without its frame."""
        whole = writes(NotebookNode({**self._frame, "cells": [cell]}))
        return whole[len(self._head) + len("[\n") : -len("\n ]" + self._tail)]


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
