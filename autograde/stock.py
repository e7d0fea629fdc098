"""Grade a class once more with nbgrader itself, and lay its marks beside ours.

nbgrader runs each submission in a kernel of its own, a few seconds each, as whoever calls it and
behind no walls: only for a class whose work is honest.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autograde.environment import BIN
from autograde.nbgrader_config import nbgrader_config
from autograde.plan import ClassFolder
from autograde.record import scores


class StockError(RuntimeError):
    """nbgrader itself failed; the message is the end of what it said."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One test of one student: our points and nbgrader's, None where one of us has none."""

    student: str
    test: str
    ours: float | None
    stock: float | None

    @property
    def equal(self) -> bool:
        return self.ours == self.stock


def compare_with_stock(folder: ClassFolder, slug: str) -> list[Compared]:
    """Grade a copy of what was handed in with nbgrader: a row for each student and test.

    Marks given by hand count on our side and not on the other. Raises StockError.
    """
    ours = _points(folder, slug)
    with tempfile.TemporaryDirectory(prefix="stock-") as scratch:
        other = ClassFolder(Path(scratch) / "class")
        shutil.copytree(folder.root / "source" / slug, other.root / "source" / slug)
        for student in ours:
            shutil.copytree(folder.submission(student, slug), other.submission(student, slug))
        (other.root / "nbgrader_config.py").write_text(nbgrader_config(other.root))
        nbgrader(other, "generate_assignment", slug)
        nbgrader(other, "autograde", slug)
        stock = _points(other, slug)
    return [
        Compared(student, test, line.get(test), stock.get(student, {}).get(test))
        for student, line in sorted(ours.items())
        for test in dict.fromkeys([*line, *stock.get(student, {})])
    ]


def nbgrader(folder: ClassFolder, *words: str) -> str:
    """Run one of nbgrader's own commands in the class folder, as its manual says."""
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=folder.root,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise StockError(f"nbgrader {' '.join(words)} failed:\n{done.stderr[-4000:]}")
    return done.stdout


def _points(folder: ClassFolder, slug: str) -> dict[str, dict[str, float]]:
    return {
        student: {test: score.points for test, score in line.items()}
        for student, line in scores(folder, slug).items()
    }
