"""Every backend at every edge of `edges.py`; the mutants show that the edges are sharp."""

import pytest

from tests.lib.flash.agreement import kernels, tiles
from tests.lib.flash.edges import EDGES

BACKENDS = {
    "tiles of 16 by 7": tiles(16, 7),
    "tiles of 5 by 7": tiles(5, 7),
    "tiles as they are": tiles(128, 512),
}


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.__name__)
@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_the_tiles_in_pytorch(backend, edge):
    edge(backend)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.__name__)
@pytest.mark.parametrize("blocks", [(32, 16), (16, 32)], ids=str)
def test_the_triton_kernels_through_the_interpreter(blocks, edge):
    edge(kernels(*blocks))
