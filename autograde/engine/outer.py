"""A second wall, where bubblewrap is installed: around the worker and its judges as a whole.

Then even they have no network, and see neither the gradebook nor the answers of the course.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from autograde.engine.new_root import CHECKOUT, allowed

APART = ("--die-with-parent", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts")


def outer_command(argv: Sequence[str], show: Sequence[Path] = ()) -> list[str]:
    """The worker's command inside bubblewrap, or as it is where there is none that works.

    Descriptors that the caller passes on stay open.
    """
    program = shutil.which("bwrap")
    if not program:
        return list(argv)
    prefix = [program, *APART, "--cap-add", "ALL", *_files(show), "--chdir", str(CHECKOUT), "--"]
    tried = subprocess.run([*prefix, sys.executable, "-c", ""], capture_output=True, check=False)
    return [*prefix, *argv] if tried.returncode == 0 else list(argv)


def _files(show: Sequence[Path]) -> list[str]:
    """What an answer may see, and besides: the interpreter, the grader's code, control groups."""
    words = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for folder in [*allowed(show), *_interpreter(), CHECKOUT / "autograde"]:
        if folder.is_symlink() and folder.parent == Path("/"):
            words += ["--symlink", os.readlink(folder), str(folder)]
        else:
            words += ["--ro-bind", str(folder), str(folder)]
    return [*words, "--bind-try", "/sys/fs/cgroup", "/sys/fs/cgroup"]


def _interpreter() -> list[Path]:
    """The program, the way to it through the environment, and the library it may be linked to."""
    real = Path(sys.executable).resolve()
    library = sorted((real.parents[1] / "lib").glob("libpython*"))
    environment = [Path(sys.prefix) / "bin", Path(sys.prefix) / "pyvenv.cfg"]
    found = [*environment, real.parent, *library]
    return [path for path in dict.fromkeys(found) if path.exists()]
