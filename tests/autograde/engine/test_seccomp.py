"""The filter: its numbers against the kernel's own headers, its program by hand and for real."""

import errno
import os
import re
import socket
from pathlib import Path

import pytest

from autograde.engine import libc, seccomp
from autograde.engine.seccomp import CLONE3, DENIED, LOOKED_INTO, MACHINES, X32, program

ALLOW, KILL = 0x7FFF0000, 0x80000000
DENY, ABSENT = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


def verdict(machine, number, first=0, arch=None):
    """A machine for the five instructions in use, written from the kernel's description of them."""
    data = {0: number, 4: MACHINES[machine] if arch is None else arch, 16: first & 0xFFFFFFFF}
    steps, at, held = program(machine), 0, None
    while True:
        code, true, false, k = steps[at]
        at += 1
        if code == 0x20:
            held = data[k]
        elif code == 0x06:
            return k
        else:
            holds = {0x15: held == k, 0x35: held >= k, 0x45: bool(held & k)}[code]
            at += true if holds else false


def number_of(name, machine):
    return (DENIED | LOOKED_INTO)[name][list(MACHINES).index(machine)]


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernels_headers(machine):
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip(
            f"The kernel's headers ({header}) aren't installed, so nothing to compare with."
        )
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    known = {name: int(number) for name, number in found}
    ours = {name: number_of(name, machine) for name in DENIED | LOOKED_INTO}
    ours["clone3"] = CLONE3
    wrong = {n: (v, known[n]) for n, v in ours.items() if n in known and known[n] != v}
    assert wrong == {}
    younger = {"open_tree_attr"}  # than some headers
    assert {n for n, v in ours.items() if v is not None} - known.keys() <= younger


@pytest.mark.parametrize("machine", MACHINES)
def test_each_denied_call_is_refused_and_its_neighbours_are_not(machine):
    denied = {numbers[list(MACHINES).index(machine)] for numbers in DENIED.values()} - {None}
    assert {verdict(machine, number) for number in denied} == {DENY}
    looked_into = {number_of(name, machine) for name in LOOKED_INTO} | {CLONE3}
    others = set(range(480)) - denied - looked_into
    assert {verdict(machine, number) for number in others} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
def test_clone_makes_threads_and_processes_but_no_namespaces(machine):
    clone = number_of("clone", machine)
    assert verdict(machine, clone, 0x3D0F00) == ALLOW  # the flags of a thread of glibc
    assert verdict(machine, clone, 17) == ALLOW  # SIGCHLD: a fork
    assert {verdict(machine, clone, 17 | 1 << bit) for bit in (17, *range(25, 31))} == {DENY}
    assert verdict(machine, CLONE3) == ABSENT


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_sockets_of_three_families_only(machine, call):
    allowed = {f for f in range(46) if verdict(machine, number_of(call, machine), f) == ALLOW}
    assert allowed == {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6}


def test_other_sets_of_numbers_do_not_pass_by_the_table():
    assert verdict("x86_64", 39, arch=0x40000003) == KILL  # i386
    assert verdict("aarch64", 172, arch=0x40000028) == KILL  # arm
    assert verdict("x86_64", X32 | 39) == DENY


def test_the_kernel_takes_it():
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        said = "failed"
        try:
            libc.prctl(libc.NO_NEW_PRIVS, 1)
            said = f"{seccomp.install()} {_refused(lambda: socket.socket(40, 1))}"
            socket.socketpair()
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert os.read(reading, 99).decode() in ("True True", "False False")
    os.close(reading)


def _refused(act):
    try:
        act()
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def test_an_unknown_machine_has_no_filter(monkeypatch):
    monkeypatch.setattr(seccomp.platform, "machine", lambda: "riscv64")
    assert seccomp.install() is False
