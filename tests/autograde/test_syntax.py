"""Code of several submissions is parsed at the same moment."""

import ast
import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from autograde.syntax import parse

CODE = "\n".join(f"x{i} = [a + b * (c - d) for a in range(3) if b and c]" for i in range(200))


@pytest.fixture
def restless():
    """Threads change places wherever they can, as they rarely do: in the middle of a tree."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)
    sys.setswitchinterval(interval)


def give_way(_phase, _info):
    time.sleep(0)


@pytest.mark.usefixtures("restless")
def test_threads_that_parse_at_once_do_not_disturb_each_other():
    alone = ast.dump(ast.parse(CODE))
    with ThreadPoolExecutor(8) as threads:
        trees = list(threads.map(parse, [CODE] * 160))
    assert {ast.dump(tree) for tree in trees} == {alone}
