"""Before a class is graded: which walls stand on this machine, and whether that is enough."""

import sys

from autograde.chapters import UsageError
from autograde.engine.jail import protections


class NoWalls(UsageError):
    """Isolation was required, and this machine lacks some of it."""


def add_isolation(parser) -> None:
    parser.add_argument(
        "--require-isolation",
        action="store_true",
        help="grade nothing unless every protection that `doctor` lists is there",
    )


def look_at_walls(*, required: bool) -> None:
    """Raise NoWalls where something is missing and all is required; warn where nothing protects."""
    active, missing = protections()
    if missing and required:
        raise NoWalls(
            f"--require-isolation: this machine lacks {'; '.join(missing)}. Grade on one that has "
            "it (`python -m autograde doctor` says what would help), or without this option"
        )
    if not active:
        print(
            "note: no isolation on this machine; answers run as you, with your files and the "
            "network (`python -m autograde doctor`)",
            file=sys.stderr,
        )
