"""The blocks against PyTorch's encoder and decoder layers, norms in front and behind."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close as close

from plainformer.attention.grouped_query import GroupedQueryAttention
from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.blocks import (
    Block,
    DecoderBlock,
    DeepNormBlock,
    PostNormBlock,
    PostNormDecoderBlock,
    PreNormBlock,
    PreNormDecoderBlock,
    SandwichBlock,
    deepnorm_scales,
)
from plainformer.dropout import Dropout
from plainformer.feed_forward import FeedForward
from plainformer.masks import causal_mask, padding_mask
from plainformer.norms import LayerNorm, RMSNorm
from plainformer.seeding import generator

B, T, S, H, D, D_FF = 2, 5, 7, 3, 21, 11


def drawn(module: torch.nn.Module) -> torch.nn.Module:
    """The module in float64, with every parameter drawn anew, norms and biases too."""
    g = generator(3)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g, dtype=torch.float64) / 3)
    return module


def like_torch(block: Block) -> torch.nn.TransformerEncoderLayer | torch.nn.TransformerDecoderLayer:
    """PyTorch's layer with the weights of ours, for an encoder or a decoder, whatever its order."""
    decodes = isinstance(block, DecoderBlock)
    layers = torch.nn.TransformerDecoderLayer if decodes else torch.nn.TransformerEncoderLayer
    first = isinstance(block, PreNormBlock | PreNormDecoderBlock)
    up = block.feed_forward.up_proj
    sizes = {"d_model": up.in_features, "nhead": H, "dim_feedforward": up.out_features}
    sizes["activation"] = block.feed_forward.activation
    layer = layers(**sizes, dropout=0.0, norm_first=first, batch_first=True).double()
    pairs = [
        (layer.linear1, block.feed_forward.up_proj),
        (layer.linear2, block.feed_forward.down_proj),
    ]
    norms, looks = [block.attention_norm], [(layer.self_attn, block.attention)]
    if decodes:
        norms.append(block.cross_attention_norm)
        looks.append((layer.multihead_attn, block.cross_attention))
    norms.append(block.feed_forward_norm)
    pairs += zip([getattr(layer, f"norm{i + 1}") for i in range(len(norms))], norms, strict=True)
    for to, source in pairs:
        to.load_state_dict(source.state_dict())
    for to, source in looks:
        copy_attention(to, source)
    return layer


def copy_attention(to: torch.nn.MultiheadAttention, source: torch.nn.Module) -> None:
    """Our projections into PyTorch's, which keeps three of them in one; no bias counts as 0."""
    projections = [source.q_proj, source.k_proj, source.v_proj]
    with torch.no_grad():
        to.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        to.out_proj.weight.copy_(source.out_proj.weight)
        if source.out_proj.bias is None:
            to.in_proj_bias.zero_(), to.out_proj.bias.zero_()
        else:
            to.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
            to.out_proj.bias.copy_(source.out_proj.bias)


ATTENTIONS = {
    "multi-head": lambda: MultiHeadAttention(D, H),
    "grouped-query, a group of one": lambda: GroupedQueryAttention(D, H, H, bias=True),
}


@pytest.mark.parametrize("kind", [PreNormBlock, PostNormBlock])
@pytest.mark.parametrize("attention", ATTENTIONS.values(), ids=ATTENTIONS)
@pytest.mark.parametrize("causal", [True, False])
def test_agrees_with_torch_in_values_and_gradients(kind, attention, causal):
    block = drawn(kind(D, attention(), FeedForward(D, D_FF)))
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
    close(block.feed_forward_norm.bias.grad, layer.norm2.bias.grad)


def decoder(kind: type, **how) -> DecoderBlock:
    parts = MultiHeadAttention(D, H), MultiHeadAttention(D, H), FeedForward(D, D_FF, F.relu)
    return drawn(kind(D, *parts, **how))


@pytest.mark.parametrize("kind", [PreNormDecoderBlock, PostNormDecoderBlock])
def test_the_decoder_agrees_with_torch_in_values_and_gradients(kind):
    """A causal mask on the target, a padded memory: one row has 7 positions, the other 4."""
    block = decoder(kind)
    layer = like_torch(block)
    g = generator(0)
    x, out = torch.randn(2, B, T, D, generator=g, dtype=torch.float64)
    memory = torch.randn(B, S, D, generator=g, dtype=torch.float64)
    sees = padding_mask(torch.tensor([7, 4]), S)
    own = [[tensor.clone().requires_grad_() for tensor in (x, memory)] for _ in range(2)]
    got = block(*own[0], mask=causal_mask(T), memory_mask=sees)
    want = layer(*own[1], tgt_mask=~causal_mask(T), memory_key_padding_mask=~sees[:, 0])
    close(got, want)
    got.backward(out), want.backward(out)
    for mine, reference in zip(*own, strict=True):
        close(mine.grad, reference.grad)
    theirs = layer.multihead_attn.in_proj_weight.grad.chunk(3)
    for projection, reference in zip(("q_proj", "k_proj", "v_proj"), theirs, strict=True):
        close(getattr(block.cross_attention, projection).weight.grad, reference)
    close(block.cross_attention_norm.weight.grad, layer.norm2.weight.grad)
    close(block.feed_forward_norm.weight.grad, layer.norm3.weight.grad)
    close(block.feed_forward.down_proj.bias.grad, layer.linear2.bias.grad)


@pytest.mark.parametrize("kind", [PreNormDecoderBlock, PostNormDecoderBlock])
def test_what_the_memory_mask_hides_has_no_effect(kind):
    block = decoder(kind)
    x, memory = (torch.randn(B, n, D, generator=generator(1), dtype=torch.float64) for n in (T, S))
    sees = padding_mask(torch.tensor([7, 4]), S)
    other = memory.clone()
    other[1, 4:] = 100.0
    close(block(x, memory, memory_mask=sees), block(x, other, memory_mask=sees))
    assert (block(x, memory) - block(x, other)).abs().max() > 0.1


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


# Dropout, other norms, other orders ----------------------------------------------------------


def plain(kind: type, **how) -> Block:
    return drawn(kind(D, MultiHeadAttention(D, H), FeedForward(D, D_FF), **how))


@pytest.fixture
def x():
    return torch.randn(B, T, D, generator=generator(1), dtype=torch.float64)


def normed(x, norm):
    return F.layer_norm(x, (D,), norm.weight, norm.bias, norm.eps)


def test_a_sandwich_by_its_formula_and_its_four_norms_have_weights_of_their_own(x):
    block = plain(SandwichBlock)
    mixed = block.attention(normed(x, block.attention_norm))
    y = x + normed(mixed, block.attention_out_norm)
    worked = block.feed_forward(normed(y, block.feed_forward_norm))
    close(block(x), y + normed(worked, block.feed_forward_out_norm))
    assert sum(isinstance(part, LayerNorm) for part in block.modules()) == 4


def test_in_a_sandwich_no_part_adds_more_than_its_norm_lets_through(x):
    """With fresh norms each part adds vectors of root mean square 1, even with huge weights."""
    block = SandwichBlock(D, MultiHeadAttention(D, H), FeedForward(D, D_FF)).double()
    with torch.no_grad():
        block.attention.out_proj.weight.mul_(1e4), block.feed_forward.down_proj.weight.mul_(1e4)
    added = block(x) - x
    assert added.square().mean(dim=-1).sqrt().max() < 2 + 1e-6


def test_deepnorm_by_its_formula_and_with_alpha_one_it_is_post_norm(x):
    block = plain(DeepNormBlock, alpha=3.0)
    y = normed(3 * x + block.attention(x), block.attention_norm)
    close(block(x), normed(3 * y + block.feed_forward(y), block.feed_forward_norm))
    post, one = plain(PostNormBlock), plain(DeepNormBlock, alpha=1.0)
    close(one(x), post(x))
    assert torch.equal(one.attention.q_proj.weight, post.attention.q_proj.weight)


def test_deepnorm_scales_by_hand():
    """N = 8: the fourth root of 16 is 2. N = 32: one over the fourth root of 256 is 1/4."""
    assert deepnorm_scales(8)[0] == pytest.approx(2.0)
    assert deepnorm_scales(32)[1] == pytest.approx(0.25)
    with pytest.raises(ValueError, match="n_layers must be at least 1, got 0"):
        deepnorm_scales(0)


@pytest.mark.parametrize("kind", [PreNormBlock, PostNormBlock, SandwichBlock])
def test_the_norm_can_be_another(kind, x):
    block = plain(kind, norm=RMSNorm)
    norms = [part for name, part in block.named_modules() if name.endswith("_norm")]
    assert len(norms) in (2, 4)
    assert all(isinstance(norm, RMSNorm) for norm in norms)
    assert block(x).shape == x.shape


class Once(torch.nn.Module):
    """Stands for dropout: multiplies by 0 at the calls named, and by 1 otherwise."""

    def __init__(self, *zeroed: int):
        super().__init__()
        self.zeroed, self.calls = zeroed, 0

    def forward(self, x):
        self.calls += 1
        return x * (self.calls not in self.zeroed)


def test_dropout_takes_what_a_part_adds_and_never_the_stream(x):
    """Everything dropped: pre-norm passes its input on, post-norm norms it twice."""
    for kind in PreNormBlock, SandwichBlock:
        assert torch.equal(plain(kind, dropout=Once(1, 2))(x), x)
    post = plain(PostNormBlock, dropout=Once(1, 2))
    once = normed(x, post.attention_norm)
    close(post(x), normed(once, post.feed_forward_norm))
    deep = plain(DeepNormBlock, dropout=Once(1, 2), alpha=2.0)
    once = normed(2 * x, deep.attention_norm)
    close(deep(x), normed(2 * once, deep.feed_forward_norm))


def test_dropout_in_a_decoder_takes_each_of_the_three_parts(x):
    memory = torch.randn(B, S, D, generator=generator(2), dtype=torch.float64)
    assert torch.equal(decoder(PreNormDecoderBlock, dropout=Once(1, 2, 3))(x, memory), x)
    block = decoder(PostNormDecoderBlock, dropout=Once(1, 2, 3))
    want = normed(normed(x, block.attention_norm), block.cross_attention_norm)
    close(block(x, memory), normed(want, block.feed_forward_norm))
    for kept in 1, 2, 3:
        dropped = Once(*{1, 2, 3} - {kept})
        assert not torch.equal(decoder(PreNormDecoderBlock, dropout=dropped)(x, memory), x)


def test_with_dropout_a_block_is_what_it_was_in_evaluation(x):
    block = plain(PostNormBlock, dropout=Dropout(0.5, generator(0)))
    assert not torch.equal(block(x), block(x))
    close(block.eval()(x), plain(PostNormBlock)(x))
