"""The warm process: it has torch imported and knows no secrets, and forks two for each submission.

The driver starts it with `python -m autograde.engine.worker FD OPTIONS`, never by a fork, so that
no hidden test lies in the memory that an answer inherits. For each submission it is handed one end
of a socket pair, which it passes on to the judge unread.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import time

LONGEST = 600.0  # seconds for a whole submission, if the driver says nothing else


def main(descriptor: int, options: dict) -> None:
    """Serve the driver until it closes."""
    driver = socket.socket(fileno=descriptor)
    for name in ("torch", "numpy", "plainformer.check"):
        importlib.import_module(name)
    for name in options["warm"]:
        with contextlib.suppress(Exception):  # the setup that imports it will say what is wrong
            importlib.import_module(name)
    _warm_up()
    jail = _jail(options)
    try:
        driver.sendall(json.dumps({"missing": jail.missing}).encode() + b"\n")
        serve(driver, jail)
    finally:
        jail.close()


def _jail(options: dict):
    """The walls that are asked for, as far as this machine can build them."""
    from autograde.engine.jail import Jail, JailError, NoJail

    jail = Jail(slot=options["slot"], memory=options["memory"])
    why = "not asked for"
    if options["isolation"] != "none":
        try:
            jail.prepare()
            return jail
        except JailError as error:
            why = str(error)
    jail = NoJail(slot=options["slot"], memory=options["memory"])
    jail.missing = (*jail.missing, f"(why: {why})")
    return jail


def _warm_up() -> None:
    """Do once what every fork would do again: imports that wait for a first use, most of all."""
    import einops
    import torch
    from IPython.core import inputtransformer2  # noqa: F401

    from autograde.engine import inmate, judge  # noqa: F401  (their pages are shared by the forks)
    from autograde.engine.cells import seed_everything
    from autograde.engine.codec import Encoder
    from autograde.engine.trial import trial

    torch.set_num_threads(1)
    torch.testing.assert_close(torch.ones(1), torch.ones(1))
    one = torch.ones(2, requires_grad=True)
    (one @ one).backward()
    seed_everything("warm")
    einops.rearrange(torch.ones(2, 3), "a b -> b a")
    einops.einsum(torch.ones(2), torch.ones(2), "a, a ->")
    Encoder().frame([one, 1.5, {"a": torch.rand(2)}])
    for code in ("check.calls(double, [(2.0,), (torch.ones(3),)], double, 'warm')", CHECK_FAILS):
        trial("warm", f"import torch\nfrom plainformer import check\n{code}", {"double": _double})
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page
    threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
    if threads != 1:
        raise RuntimeError(f"the grading worker has {threads} threads, and can't be forked safely")


CHECK_FAILS = "check.calls(double, [(torch.eye(3),)], [torch.ones(3, 3)], 'warm')"


def _double(x):
    return 2 * x


def serve(driver: socket.socket, jail) -> None:
    """One submission after another; a line that is no order ends it."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(driver, 2**16, 1)
        if not data:
            return
        order = json.loads(data)
        channel = socket.socket(fileno=descriptors[0])
        one(channel, jail, order.get("longest", LONGEST))
        driver.sendall(b'{"done": true}\n')


def one(channel: socket.socket, jail, longest: float) -> None:
    """Fork the inmate first, while there is nothing to know, then the judge; wait, and clear up."""
    from autograde.engine import inmate, judge

    judges, inmates = socket.socketpair()
    prisoner = jail.spawn(lambda: inmate.main(inmates), keep=[inmates.fileno()])
    inmates.close()
    keep = [channel.fileno(), judges.fileno()]
    decider = jail.spawn_judge(lambda: judge.main(channel, judges, jail.out_of_memory), keep=keep)
    channel.close()
    judges.close()
    _wait(decider, longest)
    jail.end(prisoner)


def _wait(child: int, longest: float) -> None:
    """Wait for the judge; one that never ends is killed, and the driver sees its silence."""
    until = time.monotonic() + longest
    step = 0.001
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return
        time.sleep(step)
        step = min(step * 1.5, 0.02)


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]))
