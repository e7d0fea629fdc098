"""The few Linux calls that Python 3.11 does not offer, and the names of their flags.

Importing this is harmless everywhere; calling it on another system raises AttributeError.
"""

import ctypes
import os
from pathlib import Path

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
MNT_DETACH = 2
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4

PDEATHSIG, DUMPABLE, SECCOMP, CAPBSET_DROP, NO_NEW_PRIVS, CAP_AMBIENT = 1, 4, 22, 24, 38, 47
CHILD_SUBREAPER = 36
SYS_ADMIN = 21  # the capability

_MOUNT_SETATTR = 442  # the same number on every machine of today; new in Linux 5.12
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_CAPABILITIES = 0x20080522  # version 3 of the interface

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args) -> int:
    result = getattr(_libc, name)(*args)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    _call("unshare", flags)


def setns(descriptor: int, kind: int) -> None:
    _call("setns", descriptor, kind)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    try:
        words = (source.encode(), target.encode(), kind.encode() or None)
        _call("mount", *words, ctypes.c_ulong(flags), data.encode() or None)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({target})") from None


def detach(target: str) -> None:
    """Unmount, now or as soon as nobody uses it."""
    _call("umount2", target.encode(), MNT_DETACH)


def restrict(target: str, attributes: int) -> None:
    """Make a mount, and all that is mounted below it, read-only and the like."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    words = (_AT_FDCWD, target.encode(), _AT_RECURSIVE, ctypes.byref(wanted))
    _call("syscall", ctypes.c_long(_MOUNT_SETATTR), *words, ctypes.c_size_t(32))


def enter_root(folder: str) -> None:
    """Make a mounted folder the root, and let go of the old one."""
    os.chdir(folder)
    _call("pivot_root", b".", b".")
    detach(".")
    os.chdir("/")


def prctl(option: int, *args: int) -> None:
    _call("prctl", option, *map(ctypes.c_ulong, (*args, 0, 0, 0, 0)[:4]))


def has_capability(number: int) -> bool:
    """Whether this process holds a capability in its own user namespace."""
    status = Path("/proc/self/status").read_text()
    effective = next(line for line in status.splitlines() if line.startswith("CapEff"))
    return bool(int(effective.split()[1], 16) >> number & 1)


def drop_capabilities() -> None:
    """Give up all of them, and the right ever to get them back by running a program."""
    prctl(CAP_AMBIENT, 4)  # clear all
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())


def drop_bounding_set() -> None:
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for number in range(last + 1):
        prctl(CAPBSET_DROP, number)


def die_with_parent() -> None:
    prctl(PDEATHSIG, 9)
