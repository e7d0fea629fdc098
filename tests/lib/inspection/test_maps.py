import pytest
import torch
from torch import nn
from torch.testing import assert_close as close

from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.blocks import PreNormDecoderBlock
from plainformer.feed_forward import FeedForward
from plainformer.inspection.maps import AttentionMaps
from plainformer.masks import causal_mask, padding_mask
from plainformer.seeding import generator
from tests.lib.test_blocks import copy_attention

B, T, S, H, D = 2, 5, 7, 3, 21


@pytest.fixture
def block():
    parts = MultiHeadAttention(D, H), MultiHeadAttention(D, H), FeedForward(D, 11)
    return PreNormDecoderBlock(D, *parts)


@pytest.fixture
def given():
    g = generator(0)
    x, memory = (torch.randn(B, n, D, generator=g) for n in (T, S))
    masks = {"mask": causal_mask(T), "memory_mask": padding_mask(torch.tensor([7, 4]), S)}
    return (x, memory), masks


def test_the_maps_are_those_that_the_model_averages_with(block, given):
    (x, memory), masks = given
    with AttentionMaps(block) as maps:
        block(x, memory, **masks)
    assert set(maps) == {"attention", "cross_attention"}
    asked = block.attention_norm(x)
    _, want = like_torch(block.attention)(asked, asked, asked, attn_mask=~causal_mask(T))
    close(maps["attention"].mean(dim=1), want)
    assert maps["cross_attention"].shape == (B, H, T, S)
    close(maps["cross_attention"].sum(dim=-1), torch.ones(B, H, T))
    assert maps["cross_attention"][1, ..., 4:].eq(0).all()


def like_torch(attention):
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    copy_attention(theirs, attention)
    return theirs


def test_watching_changes_nothing_and_ends_with_the_block(block, given):
    (x, memory), masks = given
    before = block(x, memory, **masks)
    with AttentionMaps(block) as maps:
        assert torch.equal(block(x, memory, **masks), before)
    kept = dict(maps)
    block(x + 1, memory, **masks)
    assert all(maps[name] is kept[name] for name in kept)
    assert not any(part._forward_pre_hooks for part in block.modules())


def test_the_watch_ends_after_an_error_too(block, given):
    (x, memory), _ = given
    with pytest.raises(RuntimeError, match="stop"), AttentionMaps(block):
        raise RuntimeError("stop")
    assert not any(part._forward_pre_hooks for part in block.modules())
    block(x, memory)


def test_maps_carry_no_gradients_and_the_model_still_does(block, given):
    (x, memory), _ = given
    with AttentionMaps(block) as maps:
        out = block(x, memory)
    assert not any(weights.requires_grad for weights in maps.values())
    assert out.requires_grad
