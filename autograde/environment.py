"""Run with this environment's own programs first: nbgrader starts `alembic` by name."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

BIN = Path(sys.executable).parent  # not resolved: in a virtual environment the link is the point


@contextlib.contextmanager
def programs_on_path() -> Iterator[None]:
    """Put this environment's programs in front of PATH for a while.

    Without it a gradebook made by `.venv/bin/python`, with nothing activated, is left half-made.
    """
    before = os.environ.get("PATH")
    os.environ["PATH"] = os.pathsep.join([str(BIN), before] if before else [str(BIN)])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before
