"""A ceiling for memory and processes over a whole submission: control groups, version 1 or 2.

One group a slot, made by the worker and kept; each inmate enters it before it gives up its rights.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path

PREFIX = "plainformer-"
CONTROLLERS = ("memory", "pids")
YOUNG = 60.0  # seconds for which a group that nobody holds is left alone: it may be in the making


def make(name: str, memory: int, pids: int, **tables: str) -> "Group | None":
    """A group with limits (bytes, processes) that a process can really enter, or None.

    `tables` stand in for the machine's own tables of mounts and groups, in tests.
    """
    for parents in places(**tables):
        group = Group(tuple(parent / f"{PREFIX}{name}" for parent in parents))
        try:
            group.build(memory, pids)
        except OSError:
            group.close()
            continue
        return group
    return None


def places(mounts: str | None = None, own: str | None = None) -> list[tuple[Path, ...]]:
    """Folders under which a group may be made, the nearest first; two each in version 1."""
    try:
        mounts = Path("/proc/self/mounts").read_text() if mounts is None else mounts
        own = Path("/proc/self/cgroup").read_text() if own is None else own
    except OSError:
        return []
    table = [line.split() for line in mounts.splitlines()]
    paths = {names: path for _, names, path in (line.split(":", 2) for line in own.splitlines())}
    old = [_version_1(controller, table, paths) for controller in CONTROLLERS]
    if all(old):
        return [tuple(dict.fromkeys(old))]
    tops = [Path(target) for _, target, kind, *_ in table if kind == "cgroup2"]
    return [(folder,) for top in tops[:1] for folder in _version_2(top, paths.get("", "/"))]


def _version_1(controller: str, table: list[list[str]], paths: dict[str, str]) -> Path | None:
    """Below the group that we are in: its limits go on to hold."""
    for _, target, kind, options, *_ in table:
        if kind == "cgroup" and controller in options.split(","):
            path = next((p for names, p in paths.items() if controller in names.split(",")), "/")
            inside = Path(target) / path.lstrip("/")
            return inside if inside.is_dir() else Path(target)  # a container may not see its path
    return None


def _version_2(top: Path, path: str) -> list[Path]:
    """Beside the group that we are in, or higher: one that has processes can't limit children."""
    inside = top / path.lstrip("/")
    candidates = [inside, *inside.parents][: len(inside.relative_to(top).parts) + 1]
    return [folder for folder in candidates if _offers(folder)]


def _offers(folder: Path) -> bool:
    try:
        offered = (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False
    return set(CONTROLLERS) <= set(offered)


class Group:
    """The folders of one group: one in version 2, one a controller in version 1."""

    def __init__(self, folders: tuple[Path, ...]):
        self.folders = folders
        self._locks: list[int] = []
        self._oom: int | None = None

    def build(self, memory: int, pids: int) -> None:
        """Make the folders, write the limits, and send a child in to see that it is possible."""
        for folder in self.folders:
            _sweep(folder.parent)
            folder.mkdir(exist_ok=True)
            self._locks.append(_lock(folder))
        self._write(("memory.limit_in_bytes", "memory.max"), memory)
        self._write(("pids.max",), pids)
        for name, value in [("memory.memsw.limit_in_bytes", memory), ("memory.swap.max", 0)]:
            with contextlib.suppress(OSError):  # where there is no swap there are no such files
                self._write((name,), value)
        self._try()
        self._oom = os.open(self._find(("memory.oom_control", "memory.events")), os.O_RDONLY)

    def _find(self, names: tuple[str, ...]) -> Path:
        for folder in self.folders:
            for name in names:
                if (folder / name).exists():
                    return folder / name
        raise FileNotFoundError(f"no {' or '.join(names)} in {self.folders}")

    def _write(self, names: tuple[str, ...], value: int) -> None:
        self._find(names).write_text(str(value))

    def _try(self) -> None:
        child = os.fork()
        if not child:
            status = 1
            with contextlib.suppress(OSError):
                self.enter()
                status = 0
            os._exit(status)
        if os.waitpid(child, 0)[1]:
            raise PermissionError("no process may enter the group")

    def enter(self) -> None:
        """Move the calling process, which must have one thread only."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text("0")

    def out_of_memory(self) -> int:
        """Processes that the kernel has killed here for want of memory, so far."""
        return 0 if self._oom is None else _count(os.pread(self._oom, 4096, 0).decode())

    @property
    def descriptors(self) -> list[int]:
        """What a judge behind walls of its own must keep open, to be able to count."""
        return [] if self._oom is None else [self._oom]

    def close(self) -> None:
        for descriptor in [*self._locks, *self.descriptors]:
            os.close(descriptor)
        self._locks, self._oom = [], None
        for folder in self.folders:
            _remove(folder)


def _count(text: str) -> int:
    return sum(
        int(words[1]) for words in map(str.split, text.splitlines()) if words[0] == "oom_kill"
    )


def _lock(folder: Path) -> int:
    """Hold the folder: the kernel lets go when the holder is dead, however it died."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _sweep(parent: Path) -> None:
    """Remove the groups of killed workers; a group with a process in it can't be removed."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > YOUNG:
                os.close(_lock(folder))
                folder.rmdir()


def _remove(folder: Path) -> None:
    for _ in range(50):  # the last process of a group may still be on its way out
        try:
            return folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)
