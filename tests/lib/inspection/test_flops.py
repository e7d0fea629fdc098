"""The formula against PyTorch's own counter, which watches the matrix products of a real block."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.blocks import PostNormBlock, PreNormBlock
from plainformer.feed_forward import FeedForward, GatedFeedForward
from plainformer.inspection.flops import block_flops
from plainformer.masks import causal_mask


def counted(run, *arguments, **named) -> int:
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        run(*arguments, **named)
    return counter.get_total_flops()


@settings(max_examples=25, deadline=None)
@given(
    t=st.integers(1, 40),
    n_heads=st.sampled_from([1, 2, 3]),
    width=st.integers(1, 5),
    d_ff=st.integers(1, 50),
    gated=st.booleans(),
    masked=st.booleans(),
)
def test_agrees_with_what_torch_counts(t, n_heads, width, d_ff, gated, masked):
    d_model = n_heads * width
    feed_forward = (GatedFeedForward if gated else FeedForward)(d_model, d_ff)
    block = PreNormBlock(d_model, MultiHeadAttention(d_model, n_heads), feed_forward)
    mask = causal_mask(t) if masked else None
    got = block_flops(t, d_model, d_ff, n_matrices=3 if gated else 2)
    assert got.total == counted(block, torch.zeros(1, t, d_model), mask=mask)


def test_each_share_agrees_with_what_torch_counts():
    t, d_model, d_ff = 7, 21, 11
    attention, feed_forward = MultiHeadAttention(d_model, 3), FeedForward(d_model, d_ff)
    x = torch.zeros(1, t, d_model)
    got = block_flops(t, d_model, d_ff)
    assert got.feed_forward == counted(feed_forward, x)
    assert got.projections + got.mixing == counted(attention, x)
    assert got.projections == 4 * counted(attention.q_proj, x)


def test_training_costs_three_times_as_much():
    """Each product has two gradients, one for each factor; x itself needs one too, here."""
    block = PostNormBlock(21, MultiHeadAttention(21, 3), FeedForward(21, 11))
    counter = FlopCounterMode(display=False)
    with counter:
        block(torch.zeros(1, 7, 21, requires_grad=True)).sum().backward()
    assert counter.get_total_flops() == 3 * block_flops(7, 21, 11).total


@pytest.mark.parametrize("d_model", [5, 64, 768])
def test_where_attention_overtakes(d_model):
    """All matrices together at 6d, the feed-forward layer alone at 4d, when d_ff is 4d."""
    for t, sign in (6 * d_model - 1, -1), (6 * d_model, 0), (6 * d_model + 1, 1):
        flops = block_flops(t, d_model, 4 * d_model)
        apart = flops.mixing - (flops.projections + flops.feed_forward)
        assert (apart > 0) - (apart < 0) == sign
    for t, sign in (4 * d_model - 1, -1), (4 * d_model, 0), (4 * d_model + 1, 1):
        flops = block_flops(t, d_model, 4 * d_model)
        apart = flops.mixing - flops.feed_forward
        assert (apart > 0) - (apart < 0) == sign


@pytest.mark.parametrize("sizes", [(0, 3, 5), (2, 0, 5), (2, 3, 0)])
def test_sizes_below_one_are_refused(sizes):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        block_flops(*sizes)
