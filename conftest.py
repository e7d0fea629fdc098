"""What every test needs: no window, one thread, closed figures, and a way past the shape checks."""

import os
import sys

import pytest

# Before anything imports torch or matplotlib, here and in the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # several test processes share two cores
os.environ.setdefault("MPLBACKEND", "Agg")


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
