"""A look from inside, before anything that could do harm is run."""

from pathlib import Path

import pytest

from autograde.run import Engine, Limits

PROBE = """
import os

open("/tmp/plainformer-probe", "w").close()


def double(x):
    walled_in = os.getuid() != 0 and os.getpid() < 100 and os.getppid() < 100
    return 2 * x if walled_in else None
"""


@pytest.fixture(scope="session")
def walls(chapter):
    """Skip what follows where an answer is not walled in: own user, own processes, own /tmp."""
    with Engine(Limits(cpu=1, wall=5, memory=0.5)) as engine:
        verdicts = engine.run(chapter, {"90-double": PROBE}, exercises=["90-double"])
    probe = Path("/tmp/plainformer-probe")
    outside = probe.exists()
    probe.unlink(missing_ok=True)
    if outside or any(verdict.score == 0 for verdict in verdicts.values()):
        pytest.skip(
            "Attacks are only tried behind walls, and this machine lacks some of them; "
            "`python -m autograde doctor` says which."
        )
