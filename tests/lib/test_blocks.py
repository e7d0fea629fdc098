"""The block against PyTorch's encoder layer with its norms in front."""

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.attention.grouped_query import GroupedQueryAttention
from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.blocks import PreNormBlock
from plainformer.feed_forward import FeedForward
from plainformer.masks import causal_mask
from plainformer.seeding import generator

B, T, H, D, D_FF = 2, 5, 3, 21, 11


def drawn(module: torch.nn.Module) -> torch.nn.Module:
    """The module in float64, with every parameter drawn anew, norms and biases too."""
    g = generator(3)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g, dtype=torch.float64) / 3)
    return module


def like_torch(block: PreNormBlock) -> torch.nn.TransformerEncoderLayer:
    """PyTorch's layer with the weights of ours."""
    sizes = {"d_model": D, "nhead": H, "dim_feedforward": D_FF, "activation": "gelu"}
    how = {"dropout": 0.0, "norm_first": True, "batch_first": True}
    layer = torch.nn.TransformerEncoderLayer(**sizes, **how).double()
    attention, theirs = block.attention, layer.self_attn
    projections = [attention.q_proj, attention.k_proj, attention.v_proj]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    for to, source in [
        (theirs.out_proj, attention.out_proj),
        (layer.norm1, block.attention_norm),
        (layer.norm2, block.feed_forward_norm),
        (layer.linear1, block.feed_forward.up_proj),
        (layer.linear2, block.feed_forward.down_proj),
    ]:
        to.load_state_dict(source.state_dict())
    return layer


ATTENTIONS = {
    "multi-head": lambda: MultiHeadAttention(D, H),
    "grouped-query, a group of one": lambda: GroupedQueryAttention(D, H, H, bias=True),
}


@pytest.mark.parametrize("attention", ATTENTIONS.values(), ids=ATTENTIONS)
@pytest.mark.parametrize("causal", [True, False])
def test_agrees_with_torch_in_values_and_gradients(attention, causal):
    block = drawn(PreNormBlock(D, attention(), FeedForward(D, D_FF)))
    layer = like_torch(block)
    g = generator(0)
    x, out = torch.randn(2, B, T, D, generator=g, dtype=torch.float64)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    mask = causal_mask(T) if causal else torch.ones(T, T, dtype=torch.bool)
    got, want = block(ours, mask=mask), layer(theirs, src_mask=~mask)
    close(got, want)
    got.backward(out), want.backward(out)
    close(ours.grad, theirs.grad)
    close(block.feed_forward.up_proj.weight.grad, layer.linear1.weight.grad)
    close(block.attention_norm.weight.grad, layer.norm1.weight.grad)


def test_with_empty_outputs_the_block_is_the_identity():
    """Both parts end in zeros: what is left is the stream that was never normed."""
    block = PreNormBlock(D, MultiHeadAttention(D, H), FeedForward(D, D_FF))
    with torch.no_grad():
        for linear in (block.attention.out_proj, block.feed_forward.down_proj):
            linear.weight.zero_(), linear.bias.zero_()
    x = 100 * torch.randn(B, T, D, generator=generator(1))
    assert torch.equal(block(x), x)


def test_a_cache_reaches_the_attention():
    """Token by token with a cache, or all at once under a causal mask: the same."""
    block = drawn(PreNormBlock(D, GroupedQueryAttention(D, H, 1), FeedForward(D, D_FF)))
    x = torch.randn(B, T, D, generator=generator(2), dtype=torch.float64)
    with torch.no_grad():
        cache = block.attention.new_cache(B, T)
        steps = [block(x[:, i : i + 1], cache=cache) for i in range(T)]
        close(torch.cat(steps, dim=1), block(x, mask=causal_mask(T)))
