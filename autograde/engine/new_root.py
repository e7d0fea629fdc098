"""The files that exist inside the jail: an allow-list, read-only, and a small private `/tmp`.

The course's own checkout is never among them, for it holds the answers.
"""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from autograde.engine import libc

CHECKOUT = Path(__file__).resolve().parents[2]
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")  # the shared libraries
DEVICES = ("null", "zero", "full", "random", "urandom")
STAGE = "/dev/shm"  # where the new root lies until it is entered; in the worker's own mounts only


def allowed(show: Sequence[Path] = ()) -> list[Path]:
    """The folders that an answer may read, none inside another."""
    folders = {Path(name) for name in SYSTEM if os.path.isdir(name)}
    folders |= {Path(os.__file__).parent, *_packages()}
    folders |= {Path(folder).absolute() for folder in show}
    for folder in sorted(folders):
        if CHECKOUT.is_relative_to(folder.resolve()):
            raise ValueError(
                f"the jail can't show {folder}: it holds the course, and so the answers; "
                f"show a folder inside {CHECKOUT}, or move the course or the environment"
            )
    return [folder for folder in sorted(folders) if not folders & set(folder.parents)]


def _packages() -> set[Path]:
    """Where packages are found, and the library, which may be installed in place."""
    names = ("site-packages", "dist-packages", "lib-dynload")
    found = {Path(folder) for folder in sys.path if Path(folder).name in names}
    library = importlib.util.find_spec("plainformer")
    found |= {Path(folder) for folder in (library and library.submodule_search_locations) or ()}
    return {folder for folder in found if folder.is_dir()}


def stage(show: Sequence[Path], user: int) -> list[Path]:
    """Build the root, once, in a mount namespace of our own; what to give `enter` as hidden."""
    libc.mount("", "/", flags=libc.MS_REC | libc.MS_PRIVATE)
    folders = allowed(show)
    libc.mount("tmpfs", STAGE, "tmpfs", data="size=1m,mode=755")
    for folder in folders:
        _show(folder)
    root = Path(STAGE)
    for name in ("proc", "tmp", "dev/shm", "etc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in DEVICES:
        _show_device(f"/dev/{name}")
    people = ("root:x:0:0::/:/none", f"learner:x:{user}:{user}::/tmp:/none")
    (root / "etc/passwd").write_text("".join(f"{person}\n" for person in people))
    libc.restrict(STAGE, libc.ATTR_RDONLY | libc.ATTR_NOSUID)
    return [folder for folder in folders if folder.is_relative_to("/tmp")]


def _show(folder: Path) -> None:
    """Bind a folder at its own path; a link, such as /lib of today, stays a link."""
    inside = Path(f"{STAGE}{folder}")
    inside.parent.mkdir(parents=True, exist_ok=True)
    if folder.is_symlink() and folder.as_posix() in SYSTEM:
        return inside.symlink_to(os.readlink(folder))
    inside.mkdir(exist_ok=True)
    libc.mount(str(folder), str(inside), flags=libc.MS_BIND | libc.MS_REC)
    libc.restrict(str(inside), libc.ATTR_RDONLY | libc.ATTR_NOSUID | libc.ATTR_NODEV)


def _show_device(path: str) -> None:
    Path(f"{STAGE}{path}").touch()
    libc.mount(path, f"{STAGE}{path}", flags=libc.MS_BIND)


def enter(mebibytes: int, hidden: Sequence[Path] = ()) -> None:
    """Take the root, in a mount namespace of the caller's own, with private places to write.

    `hidden` are shown folders that lie below the real /tmp: the private one would cover them.
    """
    plain = libc.MS_NOSUID | libc.MS_NODEV
    libc.mount("proc", f"{STAGE}/proc", "proc", plain | libc.MS_NOEXEC)
    room = f"size={mebibytes}m,nr_inodes=4096,mode=1777"
    for name in ("tmp", "dev/shm"):
        libc.mount("tmpfs", f"{STAGE}/{name}", "tmpfs", plain, room)
    for folder in hidden:
        _show(folder)
    libc.enter_root(STAGE)
    os.chdir("/tmp")
