import pytest
import torch
from torch.testing import assert_close as close

from plainformer.attention.longformer import LongformerAttention
from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.masks import padding_mask, window_mask
from plainformer.seeding import generator

# b, t, h, d_model = 3, 13, 3, 33: heads of width 11; two neighbours on each side.
B, T, H, D_MODEL, SIDE = 3, 13, 3, 33, 2
EXACT = {"dtype": torch.float64}
# No, one and three global tokens; next to each other, at an end, and out of each other's windows.
GLOBAL = torch.zeros(B, T, dtype=torch.bool)
GLOBAL[1, 0] = GLOBAL[2, [4, 5, 12]] = True
LENGTHS = torch.tensor([13, 7, 13])
NAMES = {
    **{f"{x}_proj": name for x, name in [("q", "query"), ("k", "key"), ("v", "value")]},
    **{f"global_{x[0]}_proj": f"{x}_global" for x in ("query", "key", "value")},
}


def made(one_sided=SIDE, **options):
    module = LongformerAttention(D_MODEL, H, one_sided=one_sided, **options).double()
    g = generator(2)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g) / 3)
    return module


def inputs(t=T):
    return torch.randn(B, t, D_MODEL, generator=generator(1), **EXACT)


def dense(module, x, is_global, mask=None):
    """All t x t scores of local tokens, then of global ones, and each row from where it belongs."""
    b, t, _ = x.shape
    mask = torch.ones(b, t, dtype=torch.bool) if mask is None else mask
    is_global = is_global & mask
    heads = []
    for names in [("q_proj", "k_proj", "v_proj"), [f"global_{n}_proj" for n in "qkv"]]:
        q, k, v = (getattr(module, n)(x).view(b, t, H, -1).transpose(1, 2) for n in names)
        seen = window_mask(t, left=module.one_sided, right=module.one_sided)
        seen = (seen | is_global[:, None, :] | is_global[:, :, None]) & mask[:, None, :]
        scores = (q @ k.mT / q.shape[-1] ** 0.5).exp() * seen[:, None]
        total = scores.sum(-1, keepdim=True)
        heads.append((scores / total.where(total > 0, 1.0)) @ v)
    local, far = (each.transpose(1, 2).flatten(2) for each in heads)
    return module.out_proj(torch.where(is_global[..., None], far, local))


def theirs(module, one_sided, x, is_global, mask):
    """What the class of the transformers library gives for the same weights and its own masks."""
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    config = LongformerConfig(
        hidden_size=D_MODEL,
        num_attention_heads=H,
        attention_window=[2 * one_sided],  # of all layers; of both sides together
        attention_probs_dropout_prob=0.0,
    )
    attention = LongformerSelfAttention(config, layer_id=0).double().eval()
    weights = module.state_dict()
    attention.load_state_dict(
        {
            f"{name}.{kind}": weights[f"{ours}.{kind}"]
            for ours, name in NAMES.items()
            for kind in ("weight", "bias")
        }
    )
    told = torch.where(mask, torch.where(is_global, 10_000.0, 0.0), -10_000.0)
    (heads,) = attention(
        x,
        attention_mask=told,
        is_index_masked=told < 0,
        is_index_global_attn=told > 0,
        is_global_attn=bool((told > 0).any()),
    )
    return module.out_proj(heads)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("chosen", ["none", "some", "many"])
@pytest.mark.parametrize(("one_sided", "t"), [(2, 12), (5, 20), (3, 6)])
def test_agrees_with_the_transformers_library(one_sided, t, chosen, padded):
    """It wants a multiple of the window, of two at least on each side, as a length."""
    module, x = made(one_sided), inputs(t)
    is_global = torch.zeros(B, t, dtype=torch.bool)
    if chosen == "some":
        is_global[1, 0] = is_global[2, [3, 4, t - 1]] = True
    elif chosen == "many":
        is_global = torch.rand(B, t, generator=generator(3)) < 0.5
    lengths = torch.tensor([t, t - 2, 4]) if padded else torch.full((B,), t)
    mask = padding_mask(lengths, t)[:, 0]
    out = module(x, is_global, mask)
    want = theirs(module, one_sided, x, is_global & mask, mask)
    # Not tighter: theirs forms its softmax in float32, whatever it is given.
    close(out[mask], want[mask], rtol=1e-5, atol=1e-5)
    # To queries that are padding it gives zeros, and we what they see; nobody reads either.
    assert torch.equal(want[~mask], module.out_proj.bias.expand_as(want[~mask]))


@pytest.mark.parametrize("one_sided", [0, 1, 2, 5, 12, 40])
@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_values_and_gradients_are_those_of_the_dense_form(one_sided, lengths):
    module = made(one_sided)
    mask = None if lengths is None else padding_mask(lengths, T)[:, 0]
    push = torch.randn(B, T, D_MODEL, generator=generator(4), **EXACT)
    found = []
    for attend in (module, lambda *inputs: dense(module, *inputs)):
        x = inputs().requires_grad_()
        module.zero_grad()
        out = attend(x, GLOBAL, mask)
        (out * push).sum().backward()
        found.append([out, x.grad, *(p.grad.clone() for p in module.parameters())])
    for ours, want in zip(*found, strict=True):
        close(ours, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("t", [1, 2, 3, 16, 17, 31])
def test_any_length_will_do(t):
    module, x = made(), inputs(t)
    is_global = torch.rand(B, t, generator=generator(5)) < 0.2
    close(module(x, is_global), dense(module, x, is_global))


def test_by_hand_a_global_token_is_counted_once():
    """All projections but those of values are 0: heads average. Token 1 of 5 is global."""
    module = LongformerAttention(1, 1, one_sided=1, bias=False)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            weight.fill_(1.0 if name[:-7] in ("v_proj", "out_proj") else 0.0)
            if name.startswith("global_v"):
                weight.fill_(10.0)
    x = torch.tensor([[[2.0], [4.0], [6.0], [10.0], [28.0]]])
    is_global = torch.tensor([[False, True, False, False, False]])
    out = module(x, is_global).flatten()
    # (2+4)/2; ten times the mean of all; (4+6+10)/3; and 4 from afar: (4+6+10+28)/4, (4+10+28)/3
    close(out, torch.tensor([3.0, 100.0, 20 / 3, 12.0, 14.0]))


def test_with_no_global_token_it_is_multi_head_attention_under_a_window():
    module = made()
    plain = MultiHeadAttention(D_MODEL, H).double()
    weights = {n: w for n, w in module.state_dict().items() if not n.startswith("global")}
    plain.load_state_dict(weights)
    want = plain(inputs(), mask=window_mask(T, left=SIDE, right=SIDE))
    close(module(inputs(), torch.zeros_like(GLOBAL)), want)


def test_with_every_token_global_it_is_multi_head_attention_with_the_global_projections():
    module = made()
    plain = MultiHeadAttention(D_MODEL, H).double()
    weights = module.state_dict()
    plain.load_state_dict(
        {n: weights[n if n.startswith("out") else f"global_{n}"] for n in plain.state_dict()}
    )
    close(module(inputs(), torch.ones_like(GLOBAL)), plain(inputs()))


def test_who_influences_whom():
    """Token 6 of 13 is global; the others see two neighbours on each side, and it."""
    module, x = made(), inputs()[:1]
    is_global = torch.arange(T)[None] == 6
    want = module(x, is_global)
    for key in range(T):
        changed = x.clone()
        changed[:, key] += 1.0
        moved = (module(changed, is_global) - want).abs().amax(-1)[0] > 0
        expected = [abs(key - t) <= SIDE or 6 in (key, t) for t in range(T)]
        assert moved.tolist() == expected, key


def test_sequences_do_not_see_each_other_whatever_their_number_of_global_tokens():
    module, x, mask = made(), inputs(), padding_mask(LENGTHS, T)[:, 0]
    together = module(x, GLOBAL, mask)
    for b in range(B):
        close(together[b], module(x[b : b + 1], GLOBAL[b : b + 1], mask[b : b + 1])[0])


def test_padding_has_no_influence_even_if_it_is_said_to_be_global():
    module, x = made(), inputs()
    mask = padding_mask(LENGTHS, T)[:, 0]
    is_global = GLOBAL.clone()
    is_global[1, 9] = True  # of a sequence of seven
    out = module(x, is_global, mask)
    changed = x.clone()
    changed[1, 7:] = 50.0
    close(module(changed, is_global, mask)[mask], out[mask])
    close(out, module(x, GLOBAL, mask))
    close(out[1, :7], module(x[1:2, :7], GLOBAL[1:2, :7])[0])


def test_who_sees_nothing_gets_the_bias_and_finite_gradients():
    module, x = made(), inputs().requires_grad_()
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[0] = False  # no global token either
    out = module(x, GLOBAL, mask)
    close(out[0], module.out_proj.bias.expand(T, -1))
    out.sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in module.parameters())


def test_global_projections_begin_apart_and_are_parameters_of_their_own():
    module = LongformerAttention(D_MODEL, H, one_sided=SIDE, bias=False)
    assert len(list(module.parameters())) == 7
    assert not torch.equal(module.q_proj.weight, module.global_q_proj.weight)
    with torch.device("meta"):
        counted = sum(p.numel() for p in LongformerAttention(768, 12, one_sided=256).parameters())
    assert counted == 7 * (768 * 768 + 768)  # Longformer-base, one layer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_dtype_is_kept(dtype):
    module, x = made(), inputs() / 3
    want = module(x, GLOBAL)
    out = module.to(dtype)(x.to(dtype), GLOBAL)
    assert out.dtype == dtype
    rough = {"rtol": 0.1, "atol": 0.2} if dtype == torch.bfloat16 else {"rtol": 1e-3, "atol": 1e-4}
    close(out.double(), want, **rough)


def test_65537_tokens_without_a_tensor_of_their_square(cost):
    n, few = 65_537, 3
    module = LongformerAttention(4, 1, one_sided=4)
    is_global = torch.zeros(1, n, dtype=torch.bool)
    is_global[0, :: n // 2] = True
    assert is_global.sum() == few
    spent = cost(module, torch.zeros(1, n, 4), is_global)
    # Scores of 16 queries for 24 keys and the global ones; or three global rows over everything.
    assert spent.largest <= 4.01 * n * max(16 + 8 + few, 4)


def test_cost_is_a_line_in_the_length(cost):
    module = LongformerAttention(4, 1, one_sided=4)
    spent = []
    for n in (2048, 4096, 8192):
        is_global = torch.arange(n)[None] < 3
        spent.append(cost(module, torch.zeros(1, n, 4), is_global))
    for of in ("flops", "largest", "made"):
        one, two, four = (getattr(each, of) for each in spent)
        assert four - two == 2 * (two - one) > 0, of


@pytest.mark.parametrize("name", ["is_global", "mask"])
@pytest.mark.parametrize("wrong", [GLOBAL[:1], GLOBAL[:, :-2], GLOBAL.long()])
def test_what_is_no_boolean_for_each_token_is_refused(name, wrong, no_shape_hook):
    says = rf"{name} must be a boolean for each token, .* \(3, 13\), got .*; use .bool\(\), and"
    with pytest.raises(ValueError, match=says):
        made()(inputs(), **{"is_global": GLOBAL, name: wrong})


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match=r"d_model=33 and n_heads=5; the nearest .* is 35"):
        LongformerAttention(33, 5, one_sided=2)


def test_a_window_below_zero_is_refused():
    with pytest.raises(ValueError, match=r"one_sided must be at least 0, got -1; it counts the"):
        LongformerAttention(D_MODEL, H, one_sided=-1)
