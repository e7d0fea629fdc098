"""Where answers are run: in processes of this machine, or on the machines of a cluster.

An executor is two keywords of `grade_chapter` and `regrade_chapter`. `engine` makes something with
the `run` of an Engine, for one thread to use; `workers` says how many of them work at once. What is
read, decided and written happens here in the driver, whatever the executor.
"""

import argparse
import contextlib
import os
from collections.abc import Iterator

from autograde.chapters import UsageError
from autograde.run import Limits
from autograde.walls import add_isolation, look_at_walls

MOST_WORKERS = 8  # of one machine, unless more are asked for


class NoCluster(UsageError):
    """A scheduler was named that cannot be used."""


def add_executor(parser) -> None:
    parser.add_argument(
        "--workers",
        type=_at_least_one,
        metavar="N",
        help=f"how many submissions are run at once (default: {default_workers()}, one a "
        f"processor, at most {MOST_WORKERS}; on a cluster as many as it has workers now)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run the answers on a Dask cluster, for example tcp://10.0.0.2:8786",
    )
    add_isolation(parser)


def default_workers() -> int:
    """One a processor that we may use: an engine keeps one busy, and needs 1 GiB or so."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count())
    return min(len(usable), MOST_WORKERS)


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of workers, 1 or more")
    return int(text)


@contextlib.contextmanager
def executor(args, limits: Limits) -> Iterator[dict]:
    """The `engine` and `workers` that a command line asks for. Raises NoCluster, NoWalls."""
    required = args.require_isolation
    if args.scheduler is None:
        walled = look_at_walls(required=required, limits=limits)
        yield {"workers": args.workers or default_workers(), **walled}
        return
    try:
        from autograde.cluster import connected
    except ImportError as error:
        raise NoCluster(
            f"--scheduler needs the extra `cluster` ({error}); "
            "python -m pip install -c requirements.lock -e '.[cluster]'"
        ) from None
    wanted = args.workers or 1
    with connected(args.scheduler, limits=limits, required=required, wanted=wanted) as cluster:
        yield {"workers": args.workers or cluster.workers, "engine": cluster.engine}
