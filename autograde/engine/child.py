"""The steps that a forked child takes on its way: cut loose, limited, stripped of its rights."""

import contextlib
import itertools
import os
import resource
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from autograde.engine import libc

GIB, MIB = 2**30, 2**20
OPEN_FILES = 256
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run(shut_in: Callable[[], None], main: Callable[[], None], report: int | None = None) -> None:
    """All that a forked child does; it never comes back."""
    code = 1
    try:
        try:
            shut_in()
        except BaseException as error:
            if report is not None:
                os.write(report, f"{error}".encode()[:4096])
            raise
        main()
        code = 0
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(code)


def detach_from_worker(keep: Sequence[int]) -> None:
    """Die with the worker, in a session of our own, and hold nothing of it but `keep`."""
    if sys.platform == "linux":
        libc.die_with_parent()
    edges = [2, *sorted(keep), 2**31 - 2]
    for low, high in itertools.pairwise(edges):
        os.closerange(low + 1, high)
    os.setsid()


def silence() -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)


def mapped() -> int:
    """Bytes of address space that we have already, shared with the worker; 0 if not known."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def limit(memory: float, file_mib: int | None = None) -> None:
    already = mapped()
    limit_to(already + int(memory * GIB) if already else None, file_mib)


def limit_to(space: int | None, file_mib: int | None) -> None:
    """Ceilings that a process can't raise again: address space, core, files written and open."""
    wanted = {
        resource.RLIMIT_AS: space,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: None if file_mib is None else file_mib * MIB,
        resource.RLIMIT_NOFILE: OPEN_FILES,
    }
    for which, value in wanted.items():
        if value is not None:
            hard = resource.getrlimit(which)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))


def drop_rights(user: int | None) -> None:
    """Give up every capability, and become `user` unless there is one user only."""
    libc.drop_bounding_set()
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    libc.drop_capabilities()
    libc.prctl(libc.NO_NEW_PRIVS, 1)
    libc.prctl(libc.DUMPABLE, 0)  # equals can't look into its memory
    libc.die_with_parent()  # again: the change of user has cleared it


def tidy_environment(home: str) -> None:
    """Leave a short list; what the worker's memory still holds, it must not have been told."""
    kept = {name: os.environ[name] for name in ("LANG", "PYTHONHASHSEED") if name in os.environ}
    os.environ.clear()
    os.environ.update({"PATH": "/usr/bin:/bin", "HOME": home, "MPLBACKEND": "Agg", **kept})
    os.environ.update(dict.fromkeys(THREADS, "1"))
    tempfile.tempdir = None  # found out anew
