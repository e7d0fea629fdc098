from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close as close

from plainformer.attention.latent import LatentAttention
from plainformer.masks import causal_mask, padding_mask
from plainformer.positions.buckets import relative_positions
from plainformer.positions.rotary import Rotary, rotate_half_split, rotate_interleaved
from plainformer.positions.sinusoidal import frequencies
from plainformer.seeding import generator

# b, t, n_heads, d_value, d_query_latent = 2, 11, 3, 5, 17, primes; d_head, d_rope, d_latent are
# twice a prime and d_model is 3 * 19, as the other library takes nothing else.
B, T, H, D, DV, D_ROPE, LATENT, Q_LATENT, D_MODEL = 2, 11, 3, 14, 5, 10, 26, 17, 57
EXACT = {"dtype": torch.float64}
FORMS = [LatentAttention.forward, LatentAttention.absorbed]


def drawn(module):
    g = generator(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g) / 5)
    return module


def made(d_query_latent=None, **settings) -> LatentAttention:
    sizes = {"d_head": D, "d_value": DV, "d_rope": D_ROPE, "d_latent": LATENT}
    return drawn(
        LatentAttention(D_MODEL, H, **sizes, d_query_latent=d_query_latent, **settings)
    ).double()


def inputs(**settings):
    return torch.randn(B, T, D_MODEL, generator=generator(1), **settings)


def one_head_at_a_time(module, x, mask):
    """The paper's formulas, with a loop over heads, plain matrices and no concatenation."""
    latent = x @ module.kv_down_proj.weight[:LATENT].T
    latent = latent / (latent.square().mean(-1, keepdim=True) + 1e-6).sqrt() * module.kv_norm.weight
    place, freqs = torch.arange(T), frequencies(D_ROPE)
    k_turned = rotate_interleaved(x @ module.kv_down_proj.weight[LATENT:].T, place, freqs)
    total = 0
    for i in range(H):
        q = module.q_proj(x)[..., i * (D + D_ROPE) : (i + 1) * (D + D_ROPE)]
        up = module.kv_up_proj.weight[i * (D + DV) : (i + 1) * (D + DV)]
        k, v = latent @ up[:D].T, latent @ up[D:].T
        scores = q[..., :D] @ k.mT + rotate_interleaved(q[..., D:], place, freqs) @ k_turned.mT
        scores = (scores / (D + D_ROPE) ** 0.5).masked_fill(~mask, -torch.inf)
        total = total + scores.softmax(-1) @ v @ module.out_proj.weight[:, i * DV : (i + 1) * DV].T
    return total


@pytest.mark.parametrize("d_query_latent", [None, Q_LATENT])
def test_equals_the_paper_s_formulas_one_head_at_a_time(d_query_latent):
    module, x = made(d_query_latent), inputs(**EXACT)
    want = one_head_at_a_time(module, x, causal_mask(T))
    for form in FORMS:
        close(form(module, x, causal_mask(T)), want)


def twins(version: str, d_query_latent: int | None):
    """Ours and the transformers library's, with the same weights, and its rotations."""
    import importlib

    name = f"Deepseek{version.upper()}"
    modeling = importlib.import_module(
        f"transformers.models.deepseek_{version}.modeling_deepseek_{version}"
    )
    config = getattr(modeling, f"{name}Config")(
        hidden_size=D_MODEL,
        num_attention_heads=H,
        num_key_value_heads=H,
        kv_lora_rank=LATENT,
        q_lora_rank=d_query_latent,
        qk_nope_head_dim=D,
        qk_rope_head_dim=D_ROPE,
        v_head_dim=DV,
        rope_parameters={"rope_type": "default", "rope_theta": 31_000.0},
        attn_implementation="eager",
    )
    theirs = getattr(modeling, f"{name}Attention")(config, layer_idx=0)
    ours = made(d_query_latent, rotary=Rotary(frequencies=frequencies(D_ROPE, 31_000))).float()
    pairs = {
        theirs.kv_a_proj_with_mqa: ours.kv_down_proj,
        theirs.kv_a_layernorm: ours.kv_norm,
        theirs.kv_b_proj: ours.kv_up_proj,
        theirs.o_proj: ours.out_proj,
    }
    if d_query_latent is None:
        pairs[theirs.q_proj] = ours.q_proj
    else:
        queries = [theirs.q_a_proj, theirs.q_a_layernorm, theirs.q_b_proj]
        pairs |= dict(zip(queries, ours.q_proj, strict=True))
    with torch.no_grad():
        for their, our in pairs.items():
            their.weight.copy_(our.weight)
    turns = getattr(modeling, f"{name}RotaryEmbedding")(config)
    return ours, theirs, turns(inputs(), torch.arange(T)[None]), pairs


@pytest.mark.parametrize("version", ["v2", "v3"])
@pytest.mark.parametrize("d_query_latent", [None, Q_LATENT])
@pytest.mark.parametrize("form", FORMS)
def test_equals_deepseek_in_values_and_gradients(form, version, d_query_latent):
    ours, theirs, turns, pairs = twins(version, d_query_latent)
    x = inputs()
    hidden = torch.zeros(1, 1, T, T).masked_fill(~causal_mask(T), torch.finfo(x.dtype).min)
    want, _ = theirs(x, attention_mask=hidden, position_embeddings=turns)
    got = form(ours, x, causal_mask(T))
    close(got, want, atol=1e-5, rtol=1e-5)
    upstream = torch.randn(got.shape, generator=generator(2))
    got.backward(upstream)
    want.backward(upstream)
    for their, our in pairs.items():
        close(our.weight.grad, their.weight.grad, atol=1e-4, rtol=1e-4)  # sums over 22 tokens


MASKS = {
    "none": None,
    "causal": causal_mask(T),
    "padding": padding_mask(torch.tensor([11, 4]), T),
    "both": causal_mask(T) & padding_mask(torch.tensor([11, 4]), T),
    "each head": torch.rand(B, H, T, T, generator=generator(3)) < 0.5,
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_the_absorbed_form_is_the_plain_form_in_values_and_gradients(mask):
    module, x = made(Q_LATENT), inputs(**EXACT).requires_grad_()
    plain, absorbed = (form(module, x, mask) for form in FORMS)
    close(plain, absorbed)
    upstream = torch.randn(plain.shape, generator=generator(2), **EXACT)
    leaves = [x, *module.parameters()]
    mine = torch.autograd.grad(plain, leaves, upstream)
    other = torch.autograd.grad(absorbed, leaves, upstream)
    for a, b in zip(mine, other, strict=True):
        close(a, b)


CUTS = {
    "token by token": list(range(1, 12)),
    "prefill, then tokens": [5, *range(6, 12)],
    "chunked prefill": [3, 8, 10, 11],
    "at once": [11],
}


@torch.no_grad()
def decoded(module, cache, x, cuts, forms):
    """The prompt by the first form, what follows by the second."""
    pieces = [(0, cuts[0]), *pairwise(cuts)]
    outputs = [forms[a > 0](module, x[:, a:b], cache=cache) for a, b in pieces]
    return torch.cat(outputs, dim=1)


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("forms", [FORMS, FORMS[:1] * 2, FORMS[1:] * 2])
def test_decoding_with_a_cache_gives_what_the_whole_gives(forms, cuts):
    module, x = made(), inputs(**EXACT)
    cache = module.new_cache(B, 11)
    want = module(x, causal_mask(T))
    close(decoded(module, cache, x, cuts, forms), want)
    for form in forms:
        with torch.no_grad(), pytest.raises(ValueError, match="capacity=11"):
            form(module, x[:, :1], cache=cache)
    cache.reset()
    close(decoded(module, cache, x.flip(0), cuts, forms), want.flip(0))


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_different_length_give_what_each_gives_alone(form):
    module, x = made(Q_LATENT), inputs(**EXACT)
    alone = module(x, causal_mask(T))
    cache = module.new_cache(B, 13)
    prompt = torch.stack([x[0, :5], F.pad(x[1, :2], (0, 0, 0, 3), value=1e3)])
    with torch.no_grad():
        out = form(module, prompt, cache=cache, counts=torch.tensor([5, 2]))
        close(out[0], alone[0, :5])
        close(out[1, :2], alone[1, :2])
        for i in range(6):
            out = form(module, torch.stack([x[0, 5 + i], x[1, 2 + i]])[:, None], cache=cache)
            close(out[:, 0], torch.stack([alone[0, 5 + i], alone[1, 2 + i]]))


@pytest.mark.parametrize("form", FORMS)
def test_a_mask_hides_more_than_the_cache_does(form):
    module, x = made(), inputs(**EXACT)
    window = relative_positions(T) > -3
    want = module(x, causal_mask(T) & window)
    cache = module.new_cache(B, 11)
    with torch.no_grad():
        close(form(module, x[:, :7], window[:7, :7], cache=cache), want[:, :7])
        close(form(module, x[:, 7:], window[7:], cache=cache), want[:, 7:])


def test_a_token_costs_its_latent_and_one_turned_key():
    """DeepSeek-V2: 512 + 64 numbers a token and layer, 60 layers, two bytes each: 69,120 bytes."""
    module = LatentAttention(7, 2, d_head=128, d_rope=64, d_latent=512).bfloat16()
    assert module.new_cache(1, 1).nbytes == 2 * (512 + 64)
    assert 60 * module.new_cache(1, 1).nbytes == 69_120


def test_frequencies_survive_half_precision():
    module = made()
    module.bfloat16()
    assert torch.equal(module.rotary.frequencies, frequencies(D_ROPE))


def test_the_other_layout_is_another_function():
    half_split = made(rotary=Rotary(frequencies=frequencies(D_ROPE), rotate=rotate_half_split))
    x = inputs(**EXACT)
    assert not torch.allclose(half_split(x), made()(x))


@pytest.mark.parametrize("form", FORMS)
def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients(form):
    module, mask = made(), causal_mask(T)
    mask[2] = False
    out = form(module, inputs(**EXACT), mask)
    assert out[:, 2].eq(0).all()
    out.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize("name", ["d_head", "d_value", "d_latent", "d_query_latent"])
def test_a_size_below_one_is_refused(name):
    sizes = {"d_head": D, "d_rope": D_ROPE, "d_latent": LATENT, name: 0}
    with pytest.raises(ValueError, match=f"^{name} must be at least 1, got 0"):
        LatentAttention(D_MODEL, H, **sizes)


@pytest.mark.parametrize(("d_rope", "works"), [(7, 8), (0, 2), (-2, 2)])
def test_a_turned_key_without_pairs_is_refused(d_rope, works):
    with pytest.raises(ValueError, match=f"got {d_rope}: rotation turns pairs; use {works}"):
        LatentAttention(D_MODEL, H, d_head=D, d_rope=d_rope, d_latent=LATENT)


def test_counts_without_a_cache_are_refused():
    with pytest.raises(ValueError, match="there is no cache; pass cache="):
        made()(inputs(**EXACT), counts=torch.tensor([3, 4]))
