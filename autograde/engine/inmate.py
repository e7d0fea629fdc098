"""The process behind the wall: a small init that forks one server an exercise, and never more.

The init runs no line of an answer. It counts processor and wall time of a test from outside the
process that uses them, sweeps away whatever an answer has left running, and tells the judge how a
server died. A server runs the setup and the answer once, and then answers calls.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
import types
from pathlib import Path

from autograde.engine.border import Peer
from autograde.engine.cells import execute, fresh_space, in_words, seed_everything
from autograde.engine.handles import operate
from autograde.engine.jail import make_dumpable
from autograde.engine.poison import poison
from autograde.engine.trial import is_memory, trial

TICK = 0.05  # seconds between two looks at a running test
GRACE = 0.5  # seconds for a server that has closed its socket to be gone
PER_SECOND = os.sysconf("SC_CLK_TCK")


def main(control: socket.socket) -> None:
    """Serve the judge's orders until it closes the control socket."""
    ward = Ward()
    while True:
        if not select.select([control], [], [], TICK if ward.watching else None)[0]:
            ward.look()
            continue
        data, descriptors, _, _ = socket.recv_fds(control, 2**16, 1)
        if not data:
            return
        for order in map(json.loads, data.splitlines()):  # each is far shorter than one read
            if order["do"] == "serve":
                ward.serve(descriptors[0], control)
            elif order["do"] == "watch":
                ward.watch(order["cpu"], order["wall"])
            elif order["do"] == "end":
                control.sendall(json.dumps(ward.end()).encode())


class Ward:
    """The one server of the moment, and what it has used."""

    def __init__(self):
        self.server = 0
        self.status: int | None = None
        self.why: str | None = None  # "cpu" or "wall", when it was stopped for that
        self.watching = False
        self._allowed = self._started = (0.0, 0.0)

    def serve(self, descriptor: int, control: socket.socket) -> None:
        """Fork a server on the given end of a socket pair."""
        self.status = self.why = None
        self.watching = False
        self.server = _fork_patiently()
        if not self.server:
            control.close()
            try:
                serve(socket.socket(fileno=descriptor))
            finally:
                os._exit(1)
        os.close(descriptor)

    def watch(self, cpu: float, wall: float) -> None:
        """Count from now on."""
        self.watching, self._allowed = True, (cpu, wall)
        self._started = self._used(), time.monotonic()

    def look(self) -> None:
        """Stop the server if it has used up what it may."""
        cpu, wall = self._used() - self._started[0], time.monotonic() - self._started[1]
        if cpu > self._allowed[0]:
            self.why = "cpu"
        elif wall > self._allowed[1]:
            self.why = "wall"
        self._reap()
        if self.why:
            self._kill()

    def end(self) -> dict:
        """Everything that runs here is killed; how the server ended, before or by that."""
        self.watching = False
        until = time.monotonic() + GRACE
        while self.status is None and not self.why and time.monotonic() < until:
            self._reap()
            time.sleep(0.002)
        own = self.status is not None
        self._kill()
        return {"status": self.status if own else None, "why": self.why}

    def _kill(self) -> None:
        if os.getpid() == 1:  # of a namespace of our own; outside of one, this would kill all
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        elif self.server and self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.server, signal.SIGKILL)
        while self.status is None and self.server:
            self._reap(0)
        self._reap()

    def _reap(self, options: int = os.WNOHANG) -> None:
        """Take in the dead, the server's own death among them."""
        while True:
            try:
                child, status = os.waitpid(-1 if options else self.server, options)
            except ChildProcessError:
                return
            if not child:
                return
            if child == self.server:
                self.status = status
                if not options:
                    return

    def _used(self) -> float:
        """Processor seconds of everything that runs here, and of the dead among it."""
        if os.getpid() != 1:
            return _clock_of(self.server)
        dead = os.times()
        total = dead.children_user + dead.children_system
        for name in os.listdir("/proc"):
            if name.isdigit() and name != "1":
                total += _ticks(name) / PER_SECOND
        return total


def _ticks(process: str) -> int:
    try:
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))  # user and system time, its dead children's too


def _clock_of(process: int) -> float:
    try:
        return time.clock_gettime((~process << 3) | 2)  # Linux: the processor clock of a process
    except OSError:
        return 0.0


def _fork_patiently() -> int:
    """Fork; leftovers of an answer may still hold the last free process."""
    for _ in range(50):
        try:
            return os.fork()
        except BlockingIOError:
            time.sleep(0.02)
    return os.fork()


def _main_module() -> dict:
    """The names of a new `__main__`, where pickle and others look for what a notebook defines."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__dict__.update(fresh_space())
    return module.__dict__


# The server: from here on the learner's code runs


def serve(sock: socket.socket) -> None:
    """Set up, run the answer, then do what the judge asks for."""
    os.setsid()
    make_dumpable()  # else its own /proc/self/fd is closed to it
    with contextlib.suppress(OSError):  # where memory runs out, it goes before the init
        Path("/proc/self/oom_score_adj").write_text("1000")
    space = _main_module()

    def allow(peer, op, target, args):
        if op == "name":
            return space[target]
        if op == "names":
            return [name for name in target if name in space]
        if op == "seed":
            return seed_everything(target)
        if op == "inside":
            return trial(*target, space)  # a cell of the rare kind `judge: inproc`
        return operate(peer, op, target, args)

    peer = Peer(sock, allow)
    _, work = peer.hear()
    try:
        for code in work["setup"]:
            execute(code, "setup", space)
    except BaseException as error:
        peer.tell("setup failed", f"{type(error).__name__}: {error}"[:1000])
        return
    seed_everything(work["exercise"])
    poison(work["forbid"])
    peer.tell("set up")
    for number, code in enumerate(work["extra"]):
        with contextlib.suppress(BaseException):  # a scratch cell may well be broken
            execute(code, f"added cell {number + 1}", space)
    try:
        execute(work["answer"], work["exercise"], space)
        trouble = None
    except BaseException as error:
        unwritten = isinstance(error, NotImplementedError)
        trouble = [in_words(error)[:4000], unwritten, is_memory(error)]
    peer.tell("ready", trouble)
    peer.serve()
