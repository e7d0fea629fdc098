import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close as close

from plainformer.attention.dot_product import dot_product_attention
from plainformer.attention.linear import (
    LinearState,
    causal_linear_attention,
    elu_features,
    linear_attention,
    linear_attention_step,
    linear_state,
)
from plainformer.masks import causal_mask, padding_mask
from plainformer.seeding import generator

# b, h, t, s, d_head, d_value = 2, 3, 11, 13, 5, 7
B, H, T, S, D, DV = 2, 3, 11, 13, 5, 7
EXACT = {"dtype": torch.float64}


def qkv(t=T, s=S, **options):
    g = generator(0)
    sizes = [(B, H, t, D), (B, H, s, D), (B, H, s, DV)]
    return [torch.randn(size, generator=g, **{**EXACT, **options}) for size in sizes]


def squares(x):
    """Features of another width than the head's, and not an elu: d_head times two."""
    return torch.cat([x**2, (x - 1) ** 2], dim=-1)


def quadratic(q, k, v, mask=None, feature_map=lambda x: F.elu(x) + 1):
    """All t x s weights, made and divided by their sum."""
    weights = torch.einsum("...tf,...sf->...ts", feature_map(q), feature_map(k))
    if mask is not None:
        weights = weights * mask
    total = weights.sum(-1, keepdim=True)
    return torch.where(total > 0, weights / total.where(total > 0, 1.0), 0.0) @ v


MAPS = {"elu": elu_features, "relu": F.relu, "exp": torch.exp, "wider": squares}


def test_by_hand_the_features():
    x = torch.tensor([-2.0, -1.0, 0.0, 3.0])
    close(elu_features(x), torch.tensor([0.135335, 0.367879, 1.0, 4.0]), rtol=0, atol=1e-6)


def test_by_hand_two_tokens():
    """q = 0: the feature is 1, weights are the features of the keys, 1 and 3, of values 2 and 6."""
    q, k, v = torch.zeros(2, 1), torch.tensor([[0.0], [2.0]]), torch.tensor([[2.0], [6.0]])
    assert linear_attention(q, k, v).flatten().tolist() == [5, 5]  # (1 * 2 + 3 * 6) / 4
    assert causal_linear_attention(q, k, v).flatten().tolist() == [2, 5]
    state = linear_state(k, v)
    assert (state.kv.tolist(), state.z.tolist()) == ([[20.0]], [4.0])


def test_features_are_elu_plus_one_with_its_gradient():
    ours = torch.tensor([*range(-17, 18)], **EXACT).div(4).requires_grad_()  # 0 is among them
    theirs = ours.detach().clone().requires_grad_()
    close(elu_features(ours), F.elu(theirs) + 1)
    elu_features(ours).sum().backward()
    (F.elu(theirs) + 1).sum().backward()
    close(ours.grad, theirs.grad)


def test_features_are_positive_where_elu_plus_one_is_rounded_to_nothing():
    x = torch.tensor([-20.0, -80.0, 1e30])
    assert (F.elu(x[:1]) + 1).item() == 0
    assert elu_features(x).gt(0).all()
    assert elu_features(x).isfinite().all()


@pytest.mark.parametrize("feature_map", MAPS.values(), ids=MAPS)
def test_values_and_gradients_are_those_of_the_quadratic_form(feature_map):
    ours, theirs = qkv(), qkv()
    for x in ours + theirs:
        x.requires_grad_()
    out = linear_attention(*ours, feature_map=feature_map)
    want = quadratic(*theirs, feature_map=feature_map)
    close(out, want)
    push = torch.randn(out.shape, generator=generator(1), **EXACT)
    (out * push).sum().backward()
    (want * push).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        close(a.grad, b.grad)


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 11, 12, 64])
@pytest.mark.parametrize("feature_map", MAPS.values(), ids=MAPS)
def test_causal_values_and_gradients_are_those_of_the_quadratic_form(feature_map, chunk):
    ours, theirs = qkv(T, T), qkv(T, T)
    for x in ours + theirs:
        x.requires_grad_()
    out = causal_linear_attention(*ours, feature_map=feature_map, chunk=chunk)
    want = quadratic(*theirs, causal_mask(T), feature_map=feature_map)
    close(out, want)
    push = torch.randn(out.shape, generator=generator(1), **EXACT)
    (out * push).sum().backward()
    (want * push).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        close(a.grad, b.grad)


@pytest.mark.parametrize("chunk", [1, 3, 64])
@pytest.mark.parametrize("t", [1, 2, 3, 4, 64, 65, 127])
def test_lengths_beside_the_chunk(t, chunk):
    q, k, v = qkv(t, t)
    close(causal_linear_attention(q, k, v, chunk=chunk), quadratic(q, k, v, causal_mask(t)))


@pytest.mark.parametrize("feature_map", MAPS.values(), ids=MAPS)
def test_token_by_token_gives_what_the_parallel_form_gives(feature_map):
    q, k, v = qkv(T, T)
    want = causal_linear_attention(q, k, v, feature_map=feature_map, chunk=4)
    state = None
    for i in range(T):
        now = (x[..., i, :] for x in (q, k, v))
        out, state = linear_attention_step(state, *now, feature_map=feature_map)
        close(out, want[..., i, :])
    end = linear_state(k, v, feature_map=feature_map)
    close(state.kv, end.kv)
    close(state.z, end.z)


def test_going_on_from_a_prompt():
    q, k, v = qkv(T, T)
    want = causal_linear_attention(q, k, v)
    state = linear_state(k[..., :7, :], v[..., :7, :])
    for i in range(7, T):
        out, state = linear_attention_step(state, *(x[..., i, :] for x in (q, k, v)))
        close(out, want[..., i, :])


def test_a_step_leaves_the_old_state_as_it_was():
    q, k, v = qkv(T, T)
    state = linear_state(k, v)
    before = LinearState(state.kv.clone(), state.z.clone())
    linear_attention_step(state, *(x[..., 0, :] for x in (q, k, v)))
    assert torch.equal(state.kv, before.kv)
    assert torch.equal(state.z, before.z)


def test_outputs_are_averages():
    """Weights are positive and sum to one: a constant comes back, and bounds are kept."""
    q, k, v = qkv(T, T)
    for attend in (linear_attention, causal_linear_attention):
        close(attend(q, k, torch.full_like(v, 2.5)), torch.full_like(v, 2.5))
        out = attend(q, k, v)
        assert (out <= v.amax(-2, keepdim=True) + 1e-12).all()
        assert (out >= v.amin(-2, keepdim=True) - 1e-12).all()


def test_the_future_has_no_influence():
    q, k, v = qkv(T, T)
    want = causal_linear_attention(q, k, v, chunk=4)
    for i in range(T):
        k2, v2 = k.clone(), v.clone()
        k2[..., i + 1 :, :], v2[..., i + 1 :, :] = 9.0, 9.0
        close(causal_linear_attention(q, k2, v2, chunk=4)[..., : i + 1, :], want[..., : i + 1, :])


def test_it_is_another_function_than_softmax_attention():
    q, k, v = qkv()
    assert (linear_attention(q, k, v) - dot_product_attention(q, k, v)).abs().max() > 0.05


@pytest.mark.parametrize("chunk", [3, 64])
def test_padding_has_no_influence(chunk):
    q, k, v = qkv(T, T)
    mask = padding_mask(torch.tensor([T, 6]), T)  # (b, 1, s)
    seen = mask[..., None, :]
    close(linear_attention(q, k, v, mask=mask), quadratic(q, k, v, seen))
    out = causal_linear_attention(q, k, v, mask=mask, chunk=chunk)
    close(out, quadratic(q, k, v, seen & causal_mask(T)))
    state, short = linear_state(k, v, mask=mask), linear_state(k[1, :, :6], v[1, :, :6])
    close(state.kv[1], short.kv)
    close(state.z[1], short.z)


def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients():
    q, k, v = (x.requires_grad_() for x in qkv(T, T))
    nothing = torch.zeros(T, dtype=torch.bool)
    late = torch.arange(T) >= 4
    out = linear_attention(q, k, v, mask=nothing)
    causal = causal_linear_attention(q, k, v, mask=late, chunk=3)
    (out.sum() + causal.sum()).backward()
    assert out.eq(0).all()
    assert causal[..., :4, :].eq(0).all()
    assert causal[..., 4:, :].ne(0).all()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_features_that_are_all_zero_see_nothing():
    """A feature map need not be positive: relu of negative keys leaves nothing to divide by."""
    q, k, v = qkv(T, T)
    for attend in (linear_attention, causal_linear_attention):
        assert attend(q, -k.abs(), v, feature_map=F.relu).eq(0).all()
    out, _ = linear_attention_step(
        None, q[..., 0, :], -k[..., 0, :].abs(), v[..., 0, :], feature_map=F.relu
    )
    assert out.eq(0).all()


def test_half_precision_is_kept_but_sums_do_not_stop_growing():
    """Features of 1 each: a running sum in bfloat16 would stop at 256."""
    n = 3001
    q, k = (torch.zeros(n, 1, dtype=torch.bfloat16) for _ in range(2))
    v = torch.linspace(0, 1, n).bfloat16()[:, None]
    want = v.double().cumsum(0) / torch.arange(1, n + 1)[:, None]
    out = causal_linear_attention(q, k, v)
    assert out.dtype == torch.bfloat16
    close(out.double(), want, rtol=0.01, atol=0.001)
    state = linear_state(k, v)
    assert state.z.dtype == torch.float32
    assert state.z.item() == n
    last, state = linear_attention_step(state, q[0], k[0], v[0])
    assert (last.dtype, state.z.item()) == (torch.bfloat16, n + 1)
    close(linear_attention(q, k, v)[0].double(), want[-1], rtol=0.01, atol=0.001)


def test_gradients_pass_a_numerical_check():
    inputs = [x[:1, :1].requires_grad_() for x in qkv(5, 5)]
    assert torch.autograd.gradcheck(lambda *x: causal_linear_attention(*x, chunk=2), inputs)


def inputs_of(n, requires_grad=True):
    return [torch.zeros(1, n, 4, requires_grad=requires_grad) for _ in range(3)]


@pytest.mark.parametrize("attend", [linear_attention, causal_linear_attention])
def test_65537_tokens_without_a_tensor_of_their_square(cost, attend):
    n = 65_537
    spent = cost(attend, *inputs_of(n))
    # The features, or 64 scores for each query; a square of bytes would be 4.3 GB.
    width = 4 if attend is linear_attention else 64
    assert spent.largest <= 4.01 * n * width


@pytest.mark.parametrize("attend", [linear_attention, causal_linear_attention])
def test_cost_doubles_with_the_length(cost, attend):
    spent = [cost(attend, *inputs_of(n)) for n in (2048, 4096, 8192)]
    assert spent[1].flops == 2 * spent[0].flops > 0
    for of in ("flops", "largest", "made"):  # a line: what is added doubles too
        one, two, four = (getattr(each, of) for each in spent)
        assert four - two == 2 * (two - one) > 0, of


def test_there_is_one_sum_for_each_chunk_and_not_for_each_token(cost):
    """With wide heads the sums are what is large: d_head x d_value for each of 16 chunks."""
    q, k, v = (torch.zeros(1, 512, 64) for _ in range(3))
    spent = cost(causal_linear_attention, q, k, v, chunk=32)
    assert spent.largest == 4 * 16 * 64 * 64


def test_the_state_does_not_grow_and_a_step_costs_the_same(cost):
    steps = []
    for n in (7, 8191):
        k, v = torch.zeros(B, H, n, D), torch.zeros(B, H, n, DV)
        state = linear_state(k, v)
        assert state.nbytes == 4 * B * H * D * (DV + 1)
        now = k[..., 0, :], k[..., 0, :], v[..., 0, :]
        steps.append(cost(lambda state, now: linear_attention_step(state, *now)[0], state, now))
    assert steps[0] == steps[1]


@pytest.mark.parametrize("chunk", [0, -3])
def test_a_chunk_below_one_is_refused(chunk):
    with pytest.raises(ValueError, match=f"chunk must be at least 1, got {chunk}"):
        causal_linear_attention(*qkv(T, T), chunk=chunk)


def test_lengths_that_differ_are_refused_and_nothing_is_repeated(no_shape_hook):
    """A value, or a chunk of them, that is there once would otherwise serve for all."""
    q, k, v = qkv(6, 6)
    short, mask = v[..., :3, :], torch.ones(1, dtype=torch.bool)
    for attend in (linear_attention, causal_linear_attention):
        with pytest.raises(ValueError, match=r"must be equally long, got .*k=6, v=3; pass those"):
            attend(q, k, short)
        with pytest.raises(ValueError, match="must be equally long, got k=6, mask=1; pass those"):
            attend(q, k, v, mask=mask)
    with pytest.raises(ValueError, match="got q=6, k=3, v=3"):
        causal_linear_attention(q, k[..., :3, :], short, chunk=3)
    with pytest.raises(ValueError, match="got k=6, v=3"):
        linear_state(k, short)


def test_dtypes_that_do_not_fit_are_refused(no_shape_hook):
    """Averages of whole numbers would be cut to whole numbers."""
    q, k, v = qkv(T, T)
    one = [x[..., 0, :] for x in (q, k, v)]
    for attend in (linear_attention, causal_linear_attention, one_step):
        inputs = one if attend is one_step else (q, k, v)
        for i in range(3):
            mixed = [x.float() if i == j else x for j, x in enumerate(inputs)]
            with pytest.raises(ValueError, match=r"one dtype, and .*torch.float32.*; convert"):
                attend(*mixed)
        with pytest.raises(ValueError, match=r"torch.int64; convert"):
            attend(*(x.long() for x in inputs))


def one_step(q, k, v):
    return linear_attention_step(None, q, k, v)


def test_a_state_of_other_sizes_is_refused():
    q, k, v = qkv(T, T)
    token = [x[..., 0, :] for x in (q, k, v)]
    for state in (
        linear_state(k[:1], v[:1]),
        linear_state(k, v[..., :1]),
        linear_state(k, v, feature_map=squares),
    ):
        with pytest.raises(ValueError, match=r"= \(2, 3, 5, 7\) of this token, got .*; go on with"):
            linear_attention_step(state, *token)
