"""Before a class is graded: which walls stand on this machine, and whether that is enough."""

import functools
import sys

from autograde.chapters import UsageError
from autograde.engine.jail import protections
from autograde.run import Engine, Limits


class NoWalls(UsageError):
    """Isolation was required, and this machine lacks some of it."""


def add_isolation(parser) -> None:
    parser.add_argument(
        "--require-isolation",
        action="store_true",
        help="grade nothing unless every protection that `doctor` lists is there",
    )


def look_at_walls(*, required: bool, limits: Limits | None = None) -> dict:
    """Raise NoWalls where something is missing and all is required; warn where nothing protects.

    Returns the choice of engine, as keywords: with the class's limits, and one that looks again for
    itself if all is required.
    """
    active, missing = protections()
    if missing and required:
        raise NoWalls(
            f"--require-isolation: this machine lacks {'; '.join(missing)}. Grade on one that has "
            "it (`python -m autograde doctor` says what would help), or without this option"
        )
    if not active:
        note_no_walls("this machine")
    if not required and limits in (None, Limits()):
        return {}
    isolation = "required" if required else "jail"
    return {"engine": functools.partial(Engine, limits, isolation=isolation)}


def note_no_walls(where: str) -> None:
    print(
        f"note: no isolation on {where}; answers run as you, with your files and the network "
        "(`python -m autograde doctor`)",
        file=sys.stderr,
    )
