import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from torch.testing import assert_close as close

from plainformer.attention.dot_product import dot_product_attention
from plainformer.attention.local import in_blocks, local_attention
from plainformer.masks import causal_mask, padding_mask, window_mask
from plainformer.seeding import generator

# b, h, d_head, d_value = 2, 3, 5, 7; lengths are primes as well.
B, H, D, DV = 2, 3, 5, 7
EXACT = {"dtype": torch.float64}


def qkv(t, s, **options):
    g = generator(0)
    sizes = [(B, H, t, D), (B, H, s, D), (B, H, s, DV)]
    return [torch.randn(size, generator=g, **{**EXACT, **options}) for size in sizes]


def dense(q, k, v, left, right, mask=None):
    """One row of the t x s matrix after the other, in words of the definition, no mask function."""
    t, s = q.shape[-2], k.shape[-2]
    rows = []
    for i in range(t):
        at = i + s - t
        low, high = max(0, at - left), max(0, min(s, at + right + 1))
        scores = q[..., i : i + 1, :] @ k[..., low:high, :].mT / D**0.5
        weights = scores.exp()
        if mask is not None:
            weights = weights * mask[..., None, low:high]
        total = weights.sum(-1, keepdim=True)
        rows.append((weights / total.where(total > 0, 1.0)) @ v[..., low:high, :])
    return torch.cat(rows, dim=-2)


def test_by_hand_a_window_of_two():
    """Keys of zeros: each query averages itself and the one before it."""
    v = torch.tensor([[1.0], [3.0], [5.0], [11.0]])
    zeros = torch.zeros(4, 1)
    assert local_attention(zeros, zeros, v, left=1).flatten().tolist() == [1, 2, 4, 8]
    assert local_attention(zeros, zeros, v, left=0).flatten().tolist() == [1, 3, 5, 11]
    both = local_attention(zeros, zeros, v, left=1, right=1, block=3)
    close(both.flatten(), torch.tensor([2, 3, 19 / 3, 8]))


def test_by_hand_what_the_first_block_is_given():
    """Four tokens in blocks of two, one neighbour before: each block meets three keys."""
    x = torch.tensor([[10.0], [11.0], [12.0], [13.0]])
    q, k, v, mask = in_blocks(x, x, x, left=1, block=2)
    assert q.squeeze(-1).tolist() == [[10, 11], [12, 13]]
    assert k.squeeze(-1).tolist() == v.squeeze(-1).tolist() == [[0, 10, 11], [11, 12, 13]]
    assert mask.int().tolist() == [[[0, 1, 0], [0, 1, 1]], [[1, 1, 0], [0, 1, 1]]]


# t, s: alike; fewer queries than keys, many and few; one; none; more queries than keys.
LENGTHS = [(13, 13), (7, 13), (2, 31), (1, 13), (1, 1), (13, 7), (0, 5), (5, 0)]
WINDOWS = [(0, 0), (2, 0), (0, 3), (3, 2), (1, 11), (37, 0), (41, 43), (10**12, 10**12)]


@pytest.mark.parametrize("block", [1, 3, 5, 64, None])
@pytest.mark.parametrize(("left", "right"), WINDOWS)
@pytest.mark.parametrize(("t", "s"), LENGTHS)
def test_values_and_gradients_are_those_of_the_dense_form(t, s, left, right, block):
    ours, theirs = qkv(t, s), qkv(t, s)
    for x in ours + theirs:
        x.requires_grad_()
    out = local_attention(*ours, left=left, right=right, block=block)
    mask = window_mask(t, s, left=left, right=right)
    want = dot_product_attention(*theirs, mask)
    close(out, want)
    push = torch.randn(out.shape, generator=generator(1), **EXACT)
    (out * push).sum().backward()
    (want * push).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        close(a.grad, b.grad)


@pytest.mark.parametrize(("left", "right"), WINDOWS[:-1])
@pytest.mark.parametrize(("t", "s"), [(13, 13), (7, 13)])
def test_agrees_with_the_definition_row_by_row(t, s, left, right):
    q, k, v = qkv(t, s)
    close(local_attention(q, k, v, left=left, right=right), dense(q, k, v, left, right))
    mask = padding_mask(torch.tensor([s - 2, 3]), s)
    out = local_attention(q, k, v, left=left, right=right, mask=mask)
    close(out, dense(q, k, v, left, right, mask))


@given(
    t=st.integers(1, 23),
    more=st.integers(0, 11),
    left=st.integers(0, 29),
    right=st.integers(0, 29),
    block=st.integers(1, 29),
    padding=st.integers(0, 2**34 - 1),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_window_any_block_any_padding(t, more, left, right, block, padding):
    s = t + more
    q, k, v = qkv(t, s)
    mask = torch.tensor([bool(padding >> i & 1) for i in range(s)])
    out = local_attention(q, k, v, left=left, right=right, mask=mask, block=block)
    close(out, dot_product_attention(q, k, v, window_mask(t, s, left=left, right=right) & mask))


def test_a_window_that_reaches_the_start_is_causal_attention():
    q, k, v = qkv(11, 17)
    want = dot_product_attention(q, k, v, causal_mask(11, 17))
    close(local_attention(q, k, v, left=16, block=4), want)


def test_tokens_outside_the_window_have_no_influence_and_those_at_its_edges_have():
    """Query 6 of 13 with three before and two after: it sees 3 to 8."""
    q, k, v = qkv(13, 13)
    for key in range(13):
        changed = k.clone(), v.clone()
        for x in changed:
            x[..., key, :] += 10.0
        moved = [
            (local_attention(q, *kv, left=3, right=2, block=4)[..., 6, :])
            for kv in (changed, (k, v))
        ]
        assert torch.equal(*moved) == (key not in range(3, 9)), key


def test_padding_of_one_sequence_and_of_one_head():
    q, k, v = qkv(13, 13)
    by_sequence = padding_mask(torch.tensor([13, 5]), 13)  # (b, 1, s)
    by_head = torch.rand(B, H, 13, generator=generator(2)) < 0.6
    for mask in [by_sequence, by_head, by_head[0, 0]]:
        near = window_mask(13, left=2, right=3) & mask[..., None, :]
        out = local_attention(q, k, v, left=2, right=3, mask=mask, block=5)
        close(out, dot_product_attention(q, k, v, near))


def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients():
    q, k, v = (x.requires_grad_() for x in qkv(13, 13))
    mask = torch.arange(13) >= 6  # the first six are padding: queries 0 to 5 have nothing
    out = local_attention(q, k, v, left=2, mask=mask, block=4)
    out.sum().backward()
    assert out[..., :6, :].eq(0).all()
    assert out[..., 6:, :].ne(0).all()
    assert q.grad[..., :6, :].eq(0).all()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_large_scores_stay_finite():
    q, k, v = qkv(13, 13)
    assert local_attention(1e6 * q, k, v, left=2).isfinite().all()


def test_gradients_pass_a_numerical_check():
    inputs = [x[:1, :1].requires_grad_() for x in qkv(5, 7)]
    mask = torch.tensor([True, True, False, True, True, True, False])
    options = {"left": 2, "right": 1, "mask": mask, "block": 2}
    assert torch.autograd.gradcheck(lambda *x: local_attention(*x, **options), inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_dtype_is_kept(dtype):
    q, k, v = qkv(13, 13)
    out = local_attention(*(x.to(dtype) for x in (q, k, v)), left=3, block=4)
    assert out.dtype == dtype
    rough = {"rtol": 0.05, "atol": 0.05} if dtype == torch.bfloat16 else {}
    close(out, local_attention(q, k, v, left=3).to(dtype), **rough)


def inputs_of(n, requires_grad):
    return [torch.zeros(1, n, 4, requires_grad=requires_grad) for _ in range(3)]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_65537_tokens_without_a_tensor_of_their_square(cost, requires_grad):
    n, left, right, block = 65_537, 5, 3, 8
    spent = cost(local_attention, *inputs_of(n, requires_grad), left=left, right=right, block=block)
    # Scores, 4 bytes each, or the keys of all windows; a square of bytes would be 4.3 GB.
    scores, windows = n * (block + left + right), n * (block + left + right) / block * 4
    assert spent.largest <= 4.02 * max(scores, windows)
    assert spent.flops == (3 if requires_grad else 1) * 2 * 2 * 4 * 16 * -(-n // 8) * 8


def test_the_default_block_makes_no_square_either(cost):
    for left, right in [(0, 0), (3, 3), (70, 0), (400, 300)]:
        spent = cost(local_attention, *inputs_of(8191, False), left=left, right=right)
        assert spent.largest <= 4.1 * 8192 * (max(16, min(left + right, 256)) + left + right)


@pytest.mark.parametrize("block", [16, None])
def test_cost_doubles_with_the_length_as_the_square_does_not(cost, block):
    settings = {"left": 7, "right": 4, "block": block}
    spent = [cost(local_attention, *inputs_of(n, True), **settings) for n in (2048, 4096, 8192)]
    assert spent[1].flops == 2 * spent[0].flops > 0
    for of in ("flops", "largest", "made"):  # a line: what is added doubles too
        one, two, four = (getattr(each, of) for each in spent)
        assert four - two == 2 * (two - one) > 0, of
    once, twice = (
        cost(dot_product_attention, *inputs_of(n, True), causal_mask(n)) for n in (256, 512)
    )
    assert twice.flops == 4 * once.flops
    assert twice.largest == 4 * once.largest


def test_one_query_at_the_end_of_a_long_text_costs_a_window(cost):
    q, (k, v) = torch.zeros(1, 1, 4), (torch.zeros(1, 8191, 4) for _ in range(2))
    spent = cost(local_attention, q, k, v, left=10)
    assert spent.flops == 2 * 2 * 4 * 11
    assert spent.largest <= 8191  # a byte for each key, to say that it is no padding


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"left": -1}, "left must be at least 0, got -1; a causal window of w positions is left=w"),
        ({"left": 2, "right": -3}, "right must be at least 0, got -3; a causal"),
        ({"left": 2, "block": 0}, "block must be at least 1, got 0; .* block=None picks"),
    ],
)
def test_windows_and_blocks_that_cannot_be_are_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        local_attention(*qkv(7, 7), **wrong)


def test_lengths_that_do_not_fit_are_refused_and_not_filled_up(no_shape_hook):
    q, k, v = qkv(7, 11)
    with pytest.raises(ValueError, match=r"^k and v must be equally long, got k=11, v=7; pass"):
        local_attention(q, k, v[..., :7, :], left=2)
    with pytest.raises(ValueError, match=r"^k and mask must be equally long, got k=11, mask=7"):
        local_attention(q, k, v, left=2, mask=torch.ones(7, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_dtypes_that_do_not_fit_are_refused(dtype, no_shape_hook):
    q, k, v = qkv(7, 7)
    with pytest.raises(ValueError, match=rf"holds fractions, got q: {dtype}, k: torch.float64"):
        local_attention(q.to(dtype), k, v, left=2)
    with pytest.raises(ValueError, match="holds fractions"):
        local_attention(*(x.long() for x in (q, k, v)), left=2)


def test_the_shape_hook_refuses_a_mask_with_a_row_for_each_query():
    with pytest.raises(TypeCheckError, match="mask"):
        local_attention(*qkv(7, 11), left=2, mask=causal_mask(7, 11))
