import pytest
import torch
from jaxtyping import TypeCheckError
from torch.testing import assert_close as close

from plainformer.attention.dot_product import dot_product_attention
from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.masks import causal_mask, padding_mask
from plainformer.seeding import generator

# b, t, s, n_heads, d_head = 2, 5, 7, 3, 11, so that d_model = 33: no axis can stand in for another.
B, T, S, H, D = 2, 5, 7, 3, 33


@pytest.fixture
def x():
    return torch.randn(B, T, D, generator=generator(0))


@pytest.fixture
def memory():
    return torch.randn(B, S, D, generator=generator(1))


def drawn(module: torch.nn.Module, seed: int = 2) -> torch.nn.Module:
    """The module with every parameter drawn anew, biases too."""
    g = generator(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g) / D**0.5)
    return module


def twins(bias: bool = True) -> tuple[MultiHeadAttention, torch.nn.MultiheadAttention]:
    """Ours and PyTorch's, with the same weights."""
    ours = drawn(MultiHeadAttention(D, H, bias=bias))
    theirs = torch.nn.MultiheadAttention(D, H, bias=bias, batch_first=True)
    projections = [ours.q_proj, ours.k_proj, ours.v_proj]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        theirs.out_proj.weight.copy_(ours.out_proj.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
            theirs.out_proj.bias.copy_(ours.out_proj.bias)
    return ours, theirs


def one_head_at_a_time(module, x, memory, mask=None):
    """Float64, a loop over heads, and W^O as a sum over its blocks of rows."""
    module, total = module.double(), 0.0
    for i in range(module.n_heads):
        q, k, v = (
            p(of.double()).chunk(module.n_heads, dim=-1)[i]
            for p, of in [(module.q_proj, x), (module.k_proj, memory), (module.v_proj, memory)]
        )
        block = module.out_proj.weight.T.chunk(module.n_heads)[i]
        total = total + dot_product_attention(q, k, v, mask) @ block
    return total + module.out_proj.bias


def test_by_hand_each_head_averages_its_own_columns():
    """Queries of zeros: every weight is 1/2, so each token gets the mean of both."""
    module = MultiHeadAttention(4, 2, bias=False)
    with torch.no_grad():
        module.q_proj.weight.zero_()
        for projection in (module.k_proj, module.v_proj, module.out_proj):
            projection.weight.copy_(torch.eye(4))
    x = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [3.0, 6.0, 5.0, 0.0]]])
    close(module(x), torch.tensor([[[2.0, 4.0, 4.0, 2.0], [2.0, 4.0, 4.0, 2.0]]]))


def test_by_hand_two_heads_look_at_different_tokens():
    """Head 0 matches the first pair of numbers, head 1 the second pair; scores of 0 and 100."""
    module = MultiHeadAttention(4, 2, bias=False)
    with torch.no_grad():
        module.q_proj.weight.copy_(100 * 2**0.5 * torch.eye(4))
        for projection in (module.k_proj, module.v_proj, module.out_proj):
            projection.weight.copy_(torch.eye(4))
    memory = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]])
    asks = torch.tensor([[[1.0, 0.0, 1.0, 0.0]]])  # token 0 in head 0, token 1 in head 1
    close(module(asks, memory), torch.tensor([[[1.0, 0.0, 1.0, 0.0]]]))


def test_equals_one_head_at_a_time_in_float64(x, memory):
    mask = causal_mask(T, S)
    module = drawn(MultiHeadAttention(D, H))
    got = module(x, memory, mask).double()
    close(got, one_head_at_a_time(module, x, memory, mask), atol=1e-5, rtol=1e-5)


def test_one_head_is_plain_attention(x):
    module = drawn(MultiHeadAttention(D, 1))
    q, k, v = module.q_proj(x), module.k_proj(x), module.v_proj(x)
    close(module(x), module.out_proj(dot_product_attention(q, k, v)))


def test_the_heads_may_stand_in_any_order(x):
    """Their columns in q, k, v and the rows of W^O swapped together: the same function."""
    module = drawn(MultiHeadAttention(D, H))
    want = module(x)
    order = torch.arange(D).reshape(H, D // H)[[2, 0, 1]].flatten()
    with torch.no_grad():
        for projection in (module.q_proj, module.k_proj, module.v_proj):
            projection.weight.copy_(projection.weight[order])
            projection.bias.copy_(projection.bias[order])
        module.out_proj.weight.copy_(module.out_proj.weight[:, order])
    close(module(x), want)


def test_no_position_hears_of_what_a_causal_mask_hides(x):
    module = drawn(MultiHeadAttention(D, H))
    before = module(x, mask=causal_mask(T))
    x[:, 3:] = 1e3
    assert torch.equal(module(x, mask=causal_mask(T))[:, :3], before[:, :3])


# PyTorch's masks say True where one may NOT look.
MASKS = {
    "none": (None, {}),
    "causal": (causal_mask(T), {"attn_mask": ~causal_mask(T)}),
    "padding": (
        padding_mask(torch.tensor([5, 2]), T),
        {"key_padding_mask": ~padding_mask(torch.tensor([5, 2]), T)[:, 0]},
    ),
    "both": (
        causal_mask(T) & padding_mask(torch.tensor([5, 2]), T),
        {
            "attn_mask": ~causal_mask(T),
            "key_padding_mask": ~padding_mask(torch.tensor([5, 2]), T)[:, 0],
        },
    ),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", MASKS)
def test_equals_torch_in_values_and_gradients(name, bias, x):
    ours, theirs = twins(bias)
    mask, their_masks = MASKS[name]
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    got = ours(mine, mask=mask)
    want, _ = theirs(other, other, other, need_weights=False, **their_masks)
    close(got, want)
    got.square().sum().backward()
    want.square().sum().backward()
    close(mine.grad, other.grad, atol=1e-5, rtol=1e-4)  # sums over 33 values of either sign
    grads = [p.weight.grad for p in (ours.q_proj, ours.k_proj, ours.v_proj)]
    close(torch.cat(grads), theirs.in_proj_weight.grad, atol=1e-4, rtol=1e-4)
    close(ours.out_proj.weight.grad, theirs.out_proj.weight.grad, atol=1e-4, rtol=1e-4)
    if bias:
        close(ours.out_proj.bias.grad, theirs.out_proj.bias.grad, atol=1e-4, rtol=1e-4)


def test_cross_attention_equals_torch(x, memory):
    ours, theirs = twins()
    lengths = torch.tensor([7, 3])
    mine, other = memory.clone().requires_grad_(), memory.clone().requires_grad_()
    got = ours(x, mine, padding_mask(lengths, S))
    hidden = ~padding_mask(lengths, S)[:, 0]
    want, _ = theirs(x, other, other, key_padding_mask=hidden, need_weights=False)
    close(got, want)
    got.square().sum().backward()
    want.square().sum().backward()
    close(mine.grad, other.grad, atol=1e-5, rtol=1e-4)
    assert mine.grad[1, 3:].eq(0).all()


def test_a_mask_for_each_head_equals_torch(x, memory):
    ours, theirs = twins()
    mask = torch.rand(B, H, T, S, generator=generator(3)) < 0.5
    mask[..., 0] = True  # what PyTorch gives for a query that sees nothing depends
    want, _ = theirs(x, memory, memory, attn_mask=~mask.flatten(0, 1), need_weights=False)
    close(ours(x, memory, mask), want)


def test_a_mask_of_three_axes_is_one_for_each_sequence_even_when_b_equals_n_heads():
    module = drawn(MultiHeadAttention(D, H))
    x = torch.randn(H, T, D, generator=generator(4))  # b = 3 = n_heads
    out = module(x, mask=padding_mask(torch.tensor([5, 2, 3]), T))
    close(out[1], module(x[1:2, :], x[1:2, :2])[0])
    close(out[2], module(x[2:3, :], x[2:3, :3])[0])


def test_a_query_that_sees_nothing_gets_the_last_bias_and_finite_gradients(x):
    module = drawn(MultiHeadAttention(D, H))
    mask = causal_mask(T)
    mask[2] = False
    x.requires_grad_()
    out = module(x, mask=mask)
    with torch.autograd.set_detect_anomaly(True):
        out.square().sum().backward()
    close(out[:, 2], module.out_proj.bias.expand(B, D))
    assert all(p.grad.isfinite().all() for p in [x, *module.parameters()])


def test_widths_of_a_head_may_be_chosen(x):
    module = MultiHeadAttention(D, 4, d_head=5, d_value=2, bias=False)
    shapes = [tuple(p.shape) for p in module.parameters()]
    assert shapes == [(20, D), (20, D), (8, D), (D, 8)]
    assert module(x).shape == (B, T, D)


def test_the_number_of_heads_leaves_the_parameters_alone():
    counts = {
        sum(p.numel() for p in MultiHeadAttention(768, h).parameters()) for h in (1, 2, 12, 768)
    }
    assert counts == {4 * 768 * 768 + 4 * 768}


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="the nearest d_model that works is 132"):
        MultiHeadAttention(130, 12)


def test_a_mask_for_other_keys_is_refused(x):
    with pytest.raises(TypeCheckError, match="mask"):
        MultiHeadAttention(D, H)(x, mask=torch.ones(T, T + 1))
