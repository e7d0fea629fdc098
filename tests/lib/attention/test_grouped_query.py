from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close as close
from torch.utils._python_dispatch import TorchDispatchMode

from plainformer.attention.dot_product import dot_product_attention
from plainformer.attention.grouped_query import (
    GroupedQueryAttention,
    grouped_query_attention,
    mha_to_gqa,
    pool_heads,
)
from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.masks import causal_mask, padding_mask
from plainformer.positions.alibi import alibi_bias, alibi_slopes
from plainformer.positions.buckets import causal_buckets, relative_positions
from plainformer.positions.relative_bias import RelativeBias
from plainformer.positions.rotary import Rotary, rotate_half_split
from plainformer.positions.sinusoidal import frequencies
from plainformer.seeding import generator

# b, t, s, d_value = 2, 5, 7, 13, primes; six query heads, or nothing could group; d_head in pairs.
B, T, S, H, D, DV, D_MODEL = 2, 5, 7, 6, 10, 13, 66
EXACT = {"dtype": torch.float64}


def qkv(n_kv_heads: int):
    g = generator(0)
    sizes = [(B, H, T, D), (B, n_kv_heads, S, D), (B, n_kv_heads, S, DV)]
    return [torch.randn(size, generator=g, **EXACT).requires_grad_() for size in sizes]


def drawn(module):
    g = generator(2)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g) / 3)
    return module


def inputs(t: int = 11, **settings):
    return torch.randn(B, t, D_MODEL, generator=generator(1), **settings)


MASKS = {
    "none": None,
    "causal": causal_mask(T, S),
    "padding": padding_mask(torch.tensor([7, 3]), S)[:, None],
    "each head": torch.rand(B, H, T, S, generator=generator(3)) < 0.6,
}
MASKS["each head"][..., 0] = True  # what PyTorch gives for a query that sees nothing depends


def test_by_hand_neighbouring_heads_share():
    """Queries of zeros average; heads 0 and 1 the first values, heads 2 and 3 the second."""
    q, k = torch.zeros(1, 4, 1, 1), torch.zeros(1, 2, 2, 1)
    v = torch.tensor([[[[1.0], [3.0]], [[10.0], [30.0]]]])
    assert grouped_query_attention(q, k, v).flatten().tolist() == [2, 2, 20, 20]


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_equals_torch_in_values_and_gradients(mask, n_kv_heads):
    leaves = qkv(n_kv_heads)
    got = grouped_query_attention(*leaves, mask)
    want = F.scaled_dot_product_attention(*leaves, attn_mask=mask, enable_gqa=True)
    close(got, want)
    upstream = torch.randn(got.shape, generator=generator(4), **EXACT)
    mine = torch.autograd.grad(got, leaves, upstream)
    other = torch.autograd.grad(want, leaves, upstream)
    for a, b in zip(mine, other, strict=True):
        close(a, b)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_bias_and_scale_equal_torch(n_kv_heads):
    leaves = qkv(n_kv_heads)
    bias = torch.randn(H, T, S, generator=generator(4), **EXACT)
    got = grouped_query_attention(*leaves, bias=bias, scale=1.0)
    want = F.scaled_dot_product_attention(*leaves, attn_mask=bias, scale=1.0, enable_gqa=True)
    close(got, want)
    rows = torch.randn(B, H, T, S, generator=generator(5), **EXACT)
    got = grouped_query_attention(*leaves, MASKS["causal"], bias=rows)
    both = rows.masked_fill(~MASKS["causal"], -torch.inf)
    close(got, F.scaled_dot_product_attention(*leaves, attn_mask=both, enable_gqa=True))


def test_as_many_key_heads_as_query_heads_is_plain_attention():
    q, k, v = qkv(H)
    close(
        grouped_query_attention(q, k, v, MASKS["causal"]),
        dot_product_attention(q, k, v, MASKS["causal"]),
    )


def test_repeating_in_turn_is_another_function():
    """The mistake that `repeat` makes: heads 0, 2, 4 would share, instead of 0, 1, 2."""
    q, k, v = qkv(2)
    in_turn = dot_product_attention(q, k.repeat(1, 3, 1, 1), v.repeat(1, 3, 1, 1))
    each = (x.repeat_interleave(3, dim=1) for x in (k, v))
    close(grouped_query_attention(q, k, v), dot_product_attention(q, *each))
    assert not torch.allclose(grouped_query_attention(q, k, v), in_turn)


class LargestResult(TorchDispatchMode):
    """The size of the largest tensor that any operation makes anew, and not as a view."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and not out._is_view():
            known = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
            if out.untyped_storage().data_ptr() not in known:
                self.numel = max(self.numel, out.numel())
        return out


def test_keys_and_values_are_never_repeated_in_memory():
    q, k, v = torch.zeros(1, 8, 1, 101), torch.zeros(1, 2, 499, 101), torch.zeros(1, 2, 499, 101)
    with LargestResult() as largest:
        grouped_query_attention(q, k, v, torch.ones(1, 499, dtype=torch.bool))
    assert largest.numel == 8 * 499  # the scores; the keys repeated would be 8 * 499 * 101
    with LargestResult() as largest:
        k.repeat_interleave(4, dim=1)
    assert largest.numel == 8 * 499 * 101  # the measure sees what it should


def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients():
    leaves = qkv(2)
    mask = causal_mask(T, S)
    mask[2] = False
    out = grouped_query_attention(*leaves, mask)
    assert out[:, :, 2].eq(0).all()
    out.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in leaves)


def test_huge_scores_stay_finite():
    q, k, v = qkv(3)
    assert grouped_query_attention(q * 1e4, k, v, MASKS["causal"]).isfinite().all()


# The module -----------------------------------------------------------------------------------

SCHEMES = {
    "no positions": {},
    "rotary": {"rotary": Rotary(frequencies=frequencies(D))},
    "rotary of a part": {"rotary": Rotary(frequencies=frequencies(6), rotate=rotate_half_split)},
    "alibi": {"position_bias": partial(alibi_bias, slopes=alibi_slopes(H))},
    "buckets": {"position_bias": RelativeBias(H, causal_buckets, n_buckets=6, max_distance=9)},
}


def made(n_kv_heads: int, scheme: str, **settings) -> GroupedQueryAttention:
    return drawn(
        GroupedQueryAttention(
            D_MODEL, H, n_kv_heads, d_head=D, d_value=DV, **SCHEMES[scheme], **settings
        )
    ).double()


@pytest.mark.parametrize("n_kv_heads", [1, 2, 6])
def test_the_module_equals_llama_in_values_and_gradients(n_kv_heads):
    from transformers.models.llama import modeling_llama as modeling

    config = modeling.LlamaConfig(
        hidden_size=D_MODEL,
        num_attention_heads=H,
        num_key_value_heads=n_kv_heads,
        head_dim=D,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
        attn_implementation="eager",
    )
    theirs = modeling.LlamaAttention(config, layer_idx=0)
    rotary = Rotary(frequencies=frequencies(D, 500_000), rotate=rotate_half_split)
    ours = drawn(GroupedQueryAttention(D_MODEL, H, n_kv_heads, d_head=D, rotary=rotary))
    with torch.no_grad():
        for name in ["q", "k", "v"]:
            weight = getattr(ours, f"{name}_proj").weight
            getattr(theirs, f"{name}_proj").weight.copy_(weight)
        theirs.o_proj.weight.copy_(ours.out_proj.weight)
    x = inputs()
    turns = modeling.LlamaRotaryEmbedding(config)(x, torch.arange(11)[None])
    hidden = torch.zeros(1, 1, 11, 11).masked_fill(~causal_mask(11), torch.finfo(x.dtype).min)
    want, _ = theirs(x, turns, hidden)
    got = ours(x, causal_mask(11))
    close(got, want, atol=1e-5, rtol=1e-5)
    upstream = torch.randn(got.shape, generator=generator(4))
    mine = torch.autograd.grad(got, [ours.k_proj.weight, ours.v_proj.weight], upstream)
    other = torch.autograd.grad(want, [theirs.k_proj.weight, theirs.v_proj.weight], upstream)
    for a, b in zip(mine, other, strict=True):
        close(a, b, atol=1e-4, rtol=1e-4)  # sums over 22 tokens, in float32


def test_with_a_key_head_for_each_query_head_it_is_multi_head_attention():
    multi = drawn(MultiHeadAttention(D_MODEL, H, d_head=D, d_value=DV))
    ours = GroupedQueryAttention(D_MODEL, H, H, d_head=D, d_value=DV, bias=True)
    ours.load_state_dict(multi.state_dict())
    lengths = padding_mask(torch.tensor([11, 4]), 11)
    for mask in [None, causal_mask(11), lengths, lengths[:, None], causal_mask(11) & lengths]:
        close(ours(inputs(), mask), multi(inputs(), mask=mask))


def test_a_bias_by_distance_acts_on_the_scores():
    module = made(2, "alibi")
    x = inputs(5, **EXACT)
    q = module.q_proj(x).unflatten(-1, (H, D)).transpose(1, 2)
    k = module.k_proj(x).unflatten(-1, (2, D)).transpose(1, 2)
    v = module.v_proj(x).unflatten(-1, (2, DV)).transpose(1, 2)
    bias = alibi_bias(relative_positions(5), alibi_slopes(H)).double()
    hidden = bias.masked_fill(~causal_mask(5), -torch.inf)
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden, enable_gqa=True)
    close(module(x, causal_mask(5)), module.out_proj(heads.transpose(1, 2).flatten(2)))


CUTS = {
    "token by token": list(range(1, 12)),
    "prefill, then tokens": [5, *range(6, 12)],
    "chunked prefill": [3, 8, 10, 11],
    "at once": [11],
}


@torch.no_grad()
def decoded(module, cache, x, cuts):
    pieces = zip([0, *cuts], cuts, strict=False)
    return torch.cat([module(x[:, a:b], cache=cache) for a, b in pieces], dim=1)


@pytest.mark.parametrize("n_kv_heads", [1, 3])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_decoding_with_a_cache_gives_what_the_whole_gives(cuts, scheme, n_kv_heads):
    module, x = made(n_kv_heads, scheme), inputs(**EXACT)
    cache = module.new_cache(B, 11)
    want = module(x, causal_mask(11))
    close(decoded(module, cache, x, cuts), want)
    with torch.no_grad(), pytest.raises(ValueError, match="capacity=11"):
        module(x[:, :1], cache=cache)
    cache.reset()
    close(decoded(module, cache, x.flip(0), cuts), want.flip(0))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_of_different_length_give_what_each_gives_alone(scheme):
    module, x = made(2, scheme), inputs(**EXACT)
    alone = module(x, causal_mask(11))
    cache = module.new_cache(B, 13)
    prompt = torch.stack([x[0, :5], F.pad(x[1, :2], (0, 0, 0, 3), value=1e3)])
    with torch.no_grad():
        out = module(prompt, cache=cache, counts=torch.tensor([5, 2]))
        close(out[0], alone[0, :5])
        close(out[1, :2], alone[1, :2])
        for i in range(6):
            out = module(torch.stack([x[0, 5 + i], x[1, 2 + i]])[:, None], cache=cache)
            close(out[:, 0], torch.stack([alone[0, 5 + i], alone[1, 2 + i]]))


def test_a_mask_hides_more_than_the_cache_does():
    module, x = made(2, "rotary"), inputs(**EXACT)
    window = relative_positions(11) > -3
    want = module(x, causal_mask(11) & window)
    cache = module.new_cache(B, 11)
    with torch.no_grad():
        close(module(x[:, :7], window[:7, :7], cache=cache), want[:, :7])
        close(module(x[:, 7:], window[7:], cache=cache), want[:, 7:])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_half_precision_stays_half_and_near(scheme):
    module, x = made(2, scheme), inputs(**EXACT)
    want = module(x, causal_mask(11))
    module.bfloat16()
    cache = module.new_cache(B, 11)
    got = decoded(module, cache, x.bfloat16(), [4, 11])
    assert got.dtype is torch.bfloat16
    # Eight bits: scores of up to 30 are off by 0.1, and weights by a tenth of themselves.
    assert (got - want).norm() < 0.1 * want.norm()
    module.double()


def test_the_cache_holds_the_key_heads_only():
    one, all_heads = made(1, "rotary").new_cache(B, 7), made(6, "rotary").new_cache(B, 7)
    assert all_heads.nbytes == 6 * one.nbytes == B * 7 * 6 * (D + DV) * 8


def test_parameters_are_those_of_the_course():
    """At d_model 4096 with 32 heads: MHA, GQA-8, MQA."""
    with torch.device("meta"):
        counts = [
            sum(p.numel() for p in GroupedQueryAttention(4096, 32, g).parameters())
            for g in (32, 8, 1)
        ]
    assert counts == [67_108_864, 41_943_040, 34_603_008]


# From a trained multi-head attention ----------------------------------------------------------


def test_pooling_by_hand_averages_neighbouring_heads():
    weight = torch.tensor([[1.0], [2.0], [3.0], [4.0], [10.0], [20.0], [30.0], [40.0]])
    assert pool_heads(weight, 4, 2).flatten().tolist() == [2, 3, 20, 30]  # width 2: rows 0+2, 1+3
    assert pool_heads(weight.flatten(), 4, 1).tolist() == [11, 16.5]
    assert torch.equal(pool_heads(weight, 4, 4), weight)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_heads_that_were_alike_in_each_group_stay_the_same_function(n_kv_heads, bias):
    multi = drawn(MultiHeadAttention(D_MODEL, H, d_head=D, d_value=DV, bias=bias)).double()
    with torch.no_grad():
        for name, width in [("k_proj", D), ("v_proj", DV)]:
            for parameter in getattr(multi, name).parameters():
                heads = parameter.unflatten(0, (n_kv_heads, H // n_kv_heads, width))
                heads.copy_(heads[:, :1].expand_as(heads))
    grouped = mha_to_gqa(multi, n_kv_heads)
    x = inputs(**EXACT)
    close(grouped(x, causal_mask(11)), multi(x, mask=causal_mask(11)))
    assert grouped.k_proj.weight.shape == (n_kv_heads * D, D_MODEL)


def test_the_pooled_weights_are_copies_and_means():
    multi = drawn(MultiHeadAttention(D_MODEL, H, d_head=D, d_value=DV))
    before = multi.q_proj.weight.clone()
    rotary = Rotary(frequencies=frequencies(D))
    grouped = mha_to_gqa(multi, 2, rotary=rotary, position_bias=RelativeBias(H))
    close(grouped.v_proj.weight[:DV], multi.v_proj.weight.reshape(2, 3, DV, -1)[0].mean(0))
    close(grouped.k_proj.bias[D:], multi.k_proj.bias.reshape(2, 3, D)[1].mean(0))
    with torch.no_grad():
        grouped.q_proj.weight.zero_()
    assert torch.equal(multi.q_proj.weight, before)
    assert grouped.rotary is rotary


def test_heads_that_no_group_divides_are_refused():
    with pytest.raises(ValueError, match=r"of n_kv_heads, got n_heads=6 and n_kv_heads=4"):
        grouped_query_attention(
            torch.zeros(1, 6, 2, 5), torch.zeros(1, 4, 2, 5), torch.zeros(1, 4, 2, 5)
        )
    with pytest.raises(ValueError, match="n_heads=6 and n_kv_heads=4"):
        GroupedQueryAttention(D_MODEL, 6, 4, d_head=D)
    with pytest.raises(ValueError, match="at least 1, got 6 and 0"):
        GroupedQueryAttention(D_MODEL, 6, 0, d_head=D)
    with pytest.raises(ValueError, match="the nearest d_model that works is 18"):
        GroupedQueryAttention(17, 6, 2)
    with pytest.raises(ValueError, match="n_heads=6 and n_kv_heads=4"):
        mha_to_gqa(MultiHeadAttention(D_MODEL, 6, d_head=D), 4)
    with pytest.raises(ValueError, match="rows must be a multiple of n_heads"):
        pool_heads(torch.zeros(7, 3), 6, 2)


def test_counts_without_a_cache_are_refused():
    with pytest.raises(ValueError, match="there is no cache; pass cache="):
        made(2, "rotary")(inputs(**EXACT), counts=torch.tensor([3, 4]))


def test_training_through_a_cache_is_refused():
    module = made(2, "rotary")
    with pytest.raises(ValueError, match=r"k requires gradients; wrap the call in torch.no_grad"):
        module(inputs(**EXACT), cache=module.new_cache(B, 11))
