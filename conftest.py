"""What every test needs: no window, one thread, closed figures, and a way past the shape checks."""

import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

# Before anything imports torch or matplotlib, here and in the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # several test processes share two cores
os.environ.setdefault("MPLBACKEND", "Agg")
if not any(found for name in ("nvidia[0-9]*", "kfd", "dxg") for found in Path("/dev").glob(name)):
    # No GPU: Triton kernels run in its interpreter. Read when triton is imported, and an optimiser
    # or torch.compile does that, so it is too late in a test.
    assert "triton" not in sys.modules, "triton was imported before TRITON_INTERPRET could be set"
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture
def no_shape_hook():
    """Call the library as a reader does, without the shape checks that tests run under.

    The hook refuses wrong shapes and types before our own errors can speak. It wraps at import but
    decides at each call, so it can be switched off for one test.
    """
    from jaxtyping import config

    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def close_figures():
    """Figures outlive the test that drew them, until matplotlib warns that they are too many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_terminal_summary(terminalreporter, config):
    """Say where the time went: seconds for each folder of tests, the slowest first."""
    seconds = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                seconds["/".join(Path(report.nodeid.split("::")[0]).parts[:2])] += report.duration
    terminalreporter.section("where the time went")
    for folder, spent in sorted(seconds.items(), key=lambda pair: -pair[1]):
        terminalreporter.write_line(f"{spent:7.1f} s  {folder}")
