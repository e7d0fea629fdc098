"""Walls around an answer: a forked child that shuts itself in before it runs a line of it.

The worker is warm, and a new program would lose that, so nothing is executed: the child takes
namespaces of its own, a small root, limits, another user id and a filter of system calls.
Without root it does the same in a user namespace, less the user id and, mostly, the control group.
`NoJail` has the same methods and no walls, for people who check their own answers.
"""

import contextlib
import json
import os
import resource
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from autograde.engine import cgroups, child, libc, new_root, seccomp, user_namespace

FIRST_INMATE, FIRST_JUDGE = 200_000, 210_000  # user ids, one a slot; beyond those of people
MOST_SLOTS = FIRST_JUDGE - FIRST_INMATE
JUDGE_GIB = 3.0
SHUT_IN = (
    "no network",
    "sees and signals no process outside",
    "sees no file of yours, and writes only to a private /tmp",
    "no privileges",
)
ALL = (*SHUT_IN, "own user id", "one ceiling for memory and processes", "system calls filtered")


class JailError(RuntimeError):
    """This machine can't build the walls; the message says which step failed."""


class NoJail:
    """No walls: a child process with limits and a folder of its own, which runs as you."""

    def __init__(
        self,
        *,
        slot: int = 0,
        memory: float = 2.0,
        pids: int = 64,
        file_mib: int = 64,
        show: Sequence[Path] = (),
    ):
        """`memory` is in GiB, on top of what the worker has; `show` are folders to read.

        A shown folder must be readable by everybody, for the inmate is another user.
        """
        if not 0 <= slot < MOST_SLOTS:
            raise ValueError(f"slot must be from 0 to {MOST_SLOTS - 1}, got {slot}")
        self.slot, self.memory, self.pids, self.file_mib = slot, memory, pids, file_mib
        self.show = tuple(show)
        self.active: tuple[str, ...] = ()
        self.missing: tuple[str, ...] = ALL
        self._homes: dict[int, str] = {}

    def prepare(self) -> None:
        """Nothing to prepare without walls."""

    def spawn(self, main: Callable[[], None], keep: Sequence[int]) -> int:
        """Fork a child that runs `main` with the descriptors `keep` only; its process id."""
        home = tempfile.mkdtemp(prefix="plainformer-")
        pid = os.fork()
        if not pid:
            child.run(lambda: self._settle(home, keep), main)
        self._homes[pid] = home
        return pid

    def _settle(self, home: str, keep: Sequence[int]) -> None:
        child.detach_from_worker(keep)
        child.silence()
        os.chdir(home)
        child.limit(self.memory, self.file_mib)
        child.tidy_environment(home)

    def spawn_judge(self, main: Callable[[], None], keep: Sequence[int]) -> int:
        """Fork the process that compares; its process id."""
        pid = os.fork()
        if not pid:
            child.run(lambda: self._settle_judge(keep), main)
        return pid

    def _settle_judge(self, keep: Sequence[int]) -> None:
        child.detach_from_worker(keep)
        child.silence()
        child.limit(JUDGE_GIB)

    def end(self, pid: int) -> int:
        """Kill the child and its process group, and wait; the wait status."""
        for kill in (os.kill, os.killpg):  # the group may not exist yet, nor any more
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        shutil.rmtree(self._homes.pop(pid, ""), ignore_errors=True)
        return status

    def out_of_memory(self) -> int:
        """How often the kernel has killed for want of memory in this slot, so far."""
        return 0

    def close(self) -> None:
        """Remove what was made for this slot."""


class Jail(NoJail):
    """Real walls, on Linux. Call `prepare` once in the worker, while it has one thread.

    Without root, `prepare` goes on in a forked child, while the parent waits and ends as it ends.
    """

    def prepare(self) -> None:
        """Take the worker's own namespaces, build the new root, and try one child for real.

        Raises JailError with the step that failed, if the machine lacks what the walls need.
        """
        self._rooted = user_namespace.may_change_user(FIRST_JUDGE + MOST_SLOTS)
        self._inmate = FIRST_INMATE + self.slot if self._rooted else os.getuid()
        try:
            self._group = cgroups.make(
                f"{self.slot}-{secrets.token_hex(4)}", int(self.memory * child.GIB), self.pids
            )
            if not self._rooted:
                user_namespace.enter()
            self._pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            libc.unshare(libc.NEWNS | libc.NEWNET)
            self._hidden = new_root.stage(self.show, self._inmate)
            if not self._rooted:
                libc.mount("proc", "/proc", "proc", libc.MS_NOSUID | libc.MS_NODEV)
                libc.prctl(libc.DUMPABLE, 0)
            filtered = self._try()
        except (OSError, AttributeError) as error:
            self.close()
            raise JailError(f"this machine can't build a jail: {error}") from error
        has = (True,) * len(SHUT_IN) + (self._rooted, self._group is not None, filtered)
        self.active = tuple(what for what, there in zip(ALL, has, strict=True) if there)
        self.missing = tuple(what for what, there in zip(ALL, has, strict=True) if not there)

    _group: cgroups.Group | None = None
    _report: int | None = None  # where a child writes why it could not shut itself in

    def _try(self) -> bool:
        """Spawn one child; whether it has a filter of system calls."""
        reading, self._report = os.pipe()
        writing = self._report
        pid = self.spawn(lambda: _tell_filter(writing), [writing])
        os.close(writing)
        self._report = None
        said = os.read(reading, 4096).decode()
        os.close(reading)
        self.end(pid)
        if not said.startswith("Seccomp"):
            raise OSError(said.strip() or "the child died before it was shut in")
        return said.split()[1] == "2"

    def spawn(self, main: Callable[[], None], keep: Sequence[int]) -> int:
        """Fork a child that is process 1 of its own world, and runs `main` in there."""
        libc.unshare(libc.NEWPID)  # for children only
        try:
            pid = os.fork()
            if not pid:
                child.run(lambda: self._shut_in(keep), main, self._report)
        finally:
            libc.setns(self._pid_namespace, libc.NEWPID)
        return pid

    def _shut_in(self, keep: Sequence[int]) -> None:
        """The order matters: each step takes away a right that the steps before it need."""
        child.detach_from_worker(keep)
        if self._group:
            self._group.enter()
        kinds = libc.NEWNS | libc.NEWIPC | libc.NEWUTS | libc.NEWCGROUP | libc.NEWNET
        self._enclose(kinds, self._inmate, self.memory)
        child.tidy_environment("/tmp")

    def _enclose(self, kinds: int, user: int, memory: float) -> None:
        libc.unshare(kinds)
        if kinds & libc.NEWUTS:
            socket.sethostname("jail")
        limits = child.mapped() + int(memory * child.GIB)
        new_root.enter(self.file_mib, self._hidden)
        child.silence()
        child.limit_to(limits, self.file_mib)
        if not self._group:  # it counts a whole user, graders next door too: a stopgap
            resource.setrlimit(resource.RLIMIT_NPROC, (self.pids, self.pids))
        child.drop_rights(user if self._rooted else None)
        seccomp.install()

    def _settle_judge(self, keep: Sequence[int]) -> None:
        """Outside the inmate's world, but with the same small root: no gradebook, no course.

        So what the judge needs of the grader must be imported before the fork.
        """
        counts = self._group.descriptors if self._group else []
        child.detach_from_worker([*keep, *counts])
        user = FIRST_JUDGE + self.slot
        self._enclose(libc.NEWNS | libc.NEWIPC, user, JUDGE_GIB)
        os.environ["HOME"] = "/tmp"

    def end(self, pid: int) -> int:
        """Kill process 1 of the inmate's world; the kernel kills the rest before we go on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1]

    def out_of_memory(self) -> int:
        """How often the kernel has killed for want of memory in this slot; a judge may ask too."""
        return self._group.out_of_memory() if self._group else 0

    def close(self) -> None:
        """Remove the control group."""
        if self._group:
            self._group.close()
            self._group = None


def make_dumpable() -> None:
    """For a child of the inmate: let it open its own /proc/self again."""
    if sys.platform == "linux":
        libc.prctl(libc.DUMPABLE, 1)


def _tell_filter(descriptor: int) -> None:
    status = Path("/proc/self/status").read_text().splitlines()
    os.write(descriptor, next(line for line in status if line.startswith("Seccomp:")).encode())


def protections() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What this machine offers and what it lacks, tried for real; never raises."""
    try:
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            child.run(lambda: None, lambda: _try_jail(writing))
        os.close(writing)
        with os.fdopen(reading) as said:
            text = said.read()
        os.waitpid(pid, 0)
        active, missing = json.loads(text)
    except Exception as error:  # no such system, no more processes: then nothing protects
        return (), (*ALL, f"(why: {error})")
    return tuple(active), tuple(missing)


def _try_jail(descriptor: int) -> None:
    jail = Jail(slot=MOST_SLOTS - 1)
    try:
        jail.prepare()
        said = jail.active, jail.missing
    except Exception as error:
        said = (), (*ALL, f"(why: {error})")
    os.write(descriptor, json.dumps(said).encode())
    jail.close()
