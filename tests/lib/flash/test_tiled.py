import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close as close

from plainformer.flash import tiled
from plainformer.flash.semantics import kept_mask
from plainformer.flash.tiled import key_tiles, tiled_backward, tiled_forward
from plainformer.inspection.memory import MemoryCount
from plainformer.seeding import generator
from tests.lib.flash.agreement import Case, assert_agrees, exact, inputs_of, tiles


def randn(*shape, **options):
    return torch.randn(shape, generator=generator(0), **options)


def test_by_hand_zeros_as_keys_give_the_running_average():
    v = torch.tensor([1.0, 3.0, 5.0, 11.0])[None, None, :, None]
    zeros = torch.zeros(1, 1, 4, 1)
    o, lse = tiled_forward(zeros, zeros, v, window=(None, 0), scale=1.0, tile=(2, 3))
    assert o.flatten().tolist() == [1, 2, 3, 5]
    close(lse.flatten(), torch.tensor([1.0, 2, 3, 4]).log())


def test_agrees_with_pytorch():
    q, k, v = randn(2, 3, 37, 16), randn(2, 3, 41, 16), randn(2, 3, 41, 16)
    o, _ = tiled_forward(q, k, v, scale=0.25, tile=(8, 16))
    close(o, F.scaled_dot_product_attention(q, k, v))


def test_float64_stays_float64():
    x = inputs_of(Case(dtype=torch.float64, causal=True))
    got, want = tiles(4, 5)(x), exact(x)
    for ours, right in zip(got, want, strict=True):
        close(ours, right, rtol=1e-12, atol=1e-12)


@given(
    heads=st.sampled_from([(1, 1), (4, 2), (6, 2), (3, 1)]),
    t=st.integers(0, 41),
    s=st.integers(0, 41),
    widths=st.tuples(st.integers(1, 19), st.integers(1, 19)),
    left=st.none() | st.integers(0, 45),
    right=st.none() | st.integers(0, 45),
    lengths=st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
    tile=st.tuples(st.integers(1, 48), st.integers(1, 48)),
    layout=st.sampled_from(["poisoned", "positions first", "width strided"]),
    seed=st.integers(0, 9),
)
@settings(max_examples=120, deadline=None, derandomize=True)
def test_any_shape_any_window_any_tile(
    heads, t, s, widths, left, right, lengths, tile, layout, seed
):
    case = Case(
        b=2,
        h=heads[0], g=heads[1], t=t, s=s, d_head=widths[0], d_value=widths[1],
        window=(left, right), layout=layout, seed=seed,
        key_lengths=None if lengths is None else tuple(int(x * s) for x in lengths),
    )  # fmt: skip
    # Factor 4: a maximum over a handful of numbers is no steady measure of PyTorch's own error.
    assert_agrees(tiles(*tile), case, slack=4.0)


@pytest.mark.parametrize("budget", [1, 3 * 13 * 19, 10**9])
def test_how_many_heads_are_taken_at_once_does_not_matter(monkeypatch, budget):
    monkeypatch.setattr(tiled, "BUFFER", budget)
    for h, g in [(6, 2), (5, 5), (3, 1)]:
        assert_agrees(tiles(128, 512), Case(b=3, h=h, g=g, causal=True))
        assert_agrees(tiles(4, 8), Case(b=3, h=h, g=g, key_lengths=(19, 0, 7)))


def visited(t, s, window, tile):
    return [
        (first, *found)
        for first in range(0, t, tile[0])
        for found in key_tiles(first, min(first + tile[0], t) - 1, s - t, s, window, tile[1])
    ]


@pytest.mark.parametrize("window", [(None, None), (None, 0), (3, 0), (2, 2)])
def test_tiles_hold_every_kept_pair_once_and_masks_are_asked_for_where_they_are_needed(window):
    for t, s in [(13, 13), (5, 13), (13, 5)]:
        kept, covered = kept_mask(t, s, window)[0, 0], torch.zeros(t, s, dtype=torch.int)
        for first, low, high, masked in visited(t, s, window, (4, 3)):
            part = kept[first : first + 4, low:high]
            assert part.any()
            assert masked == (not part.all())
            covered[first : first + 4, low:high] += 1
        assert covered.max() <= 1
        assert covered[kept].eq(1).all()


def test_causal_visits_half_of_the_tiles_and_a_window_a_band():
    assert len(visited(64, 64, (None, None), (8, 8))) == 64
    assert len(visited(64, 64, (None, 0), (8, 8))) == 8 * 9 // 2
    assert len(visited(64, 64, (7, 0), (8, 8))) <= 2 * 8


def spent(n, backward=False, **rules):
    """Bytes that lived at once beyond inputs and results; the largest tensor made, in entries."""
    q, k, v, grad = (torch.zeros(1, 4, n, 16) for _ in range(4))
    with MemoryCount() as count:
        o, lse = tiled_forward(q, k, v, scale=0.25, **rules)
        kept = o.nbytes + lse.nbytes
        if backward:
            kept += sum(
                x.nbytes for x in tiled_backward(q, k, v, o, lse, grad, scale=0.25, **rules)
            )
    return count.peak - kept, count.largest


@pytest.mark.parametrize("backward", [False, True])
def test_memory_beyond_the_results_does_not_grow_with_the_length(backward):
    rules = {"tile": (32, 64), "window": (40, 0)}
    once, twice, four = (spent(n, backward, **rules)[0] for n in (512, 1024, 2048))
    assert once == twice == four
    assert once < (2 if backward else 1) * 4 * 4 * 32 * 64 * 2


def test_keys_are_not_repeated_for_the_heads_that_share_them():
    q, k, v = torch.zeros(1, 8, 512, 16), torch.zeros(1, 1, 512, 16), torch.zeros(1, 1, 512, 16)
    with MemoryCount() as count:
        o, lse = tiled_forward(q, k, v, scale=0.25, tile=(32, 64))
    assert count.peak - o.nbytes - lse.nbytes < 8 * 32 * 64 * 4 * 3
    assert count.largest == o.numel()


def test_a_tile_of_no_queries_is_refused():
    x = randn(1, 1, 3, 4)
    with pytest.raises(ValueError, match="tile_queries must be at least 1, got 0"):
        tiled_forward(x, x, x, scale=1.0, tile=(0, 4))
