"""One grader a class at a time: two would write the same gradebook and the same records.

The lock belongs to the running process and not to the file, so a grader that was killed leaves
nothing behind that anybody must remove.
"""

import contextlib
import os
from collections.abc import Iterator

from autograde.chapters import UsageError
from autograde.plan import ClassFolder

try:
    import fcntl
except ImportError:  # Windows, where grading has no engine either
    fcntl = None

NAME = ".grading.lock"


class Busy(UsageError):
    """Another process is grading this class."""


@contextlib.contextmanager
def alone(folder: ClassFolder) -> Iterator[None]:
    """Hold the class for a while. Raises Busy, which names the process that holds it."""
    if fcntl is None:
        yield
        return
    path = folder.root / NAME
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)  # no child inherits it
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            raise Busy(
                f"process {holder} is grading {folder.root} already; wait until it is done, "
                f"or stop it with `kill {holder}` and run this again: nothing is lost"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
