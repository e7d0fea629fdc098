"""How far a run is, on one line of the terminal; and a Ctrl-C that stops it between submissions."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

CLEAR = "\r\x1b[K"


def counter(
    label: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Callable[[str, int, int], None]:
    """A line that counts up: how many, how fast, how long yet; nothing where it goes to a file."""
    start, stream = clock(), stream or sys.stderr

    def show(student: str, done: int, of: int) -> None:
        if stream.isatty():
            taken = clock() - start
            line = f"{label}: {done} of {of}"
            if done and taken > 0:
                line += f", {done / taken:.1f} a second, {spoken(taken / done * (of - done))} left"
            print(CLEAR + (line if done < of else ""), end="", file=stream, flush=True)

    return show


def spoken(seconds: float) -> str:
    """A duration as one reads it: `40 s`, `3 min 20 s`, `2 h 5 min`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


@contextlib.contextmanager
def ctrl_c(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C sets `stop`, so that what is under way is still recorded; a second ends."""
    if threading.current_thread() is not threading.main_thread():  # only it may handle signals
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def first(*_):
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.write(2, b"\nstopping after the submissions under way\n")  # print is not safe here

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
