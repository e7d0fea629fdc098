import pytest
import torch
import torch.nn.functional as F
from jaxtyping import TypeCheckError
from torch.testing import assert_close as close

from plainformer.attention.dot_product import attention_weights, dot_product_attention
from plainformer.masks import causal_mask, padding_mask
from plainformer.seeding import generator

# The two-token example of chapter 02: X = [[0, 1], [2, 0]] projected by three small matrices.
X = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
Q = X @ torch.tensor([[1.0, 1.0], [1.0, 2.0]])
K = X @ torch.tensor([[0.0, 1.0], [1.0, 0.0]])
V = X @ torch.tensor([[2.0, 0.0], [0.0, 1.0]])


@pytest.fixture
def qkv():
    """b, h, t, s, d_head, d_value = 2, 3, 5, 7, 11, 13: no axis can stand in for another."""
    g = generator(0)
    return [torch.randn(2, 3, *size, generator=g) for size in [(5, 11), (7, 11), (7, 13)]]


def oracle(q, k, v, mask=None):
    """Attention in float64, one query and one key at a time, with the exponentials spelled out."""
    q, k, v = q.double(), k.double(), v.double()
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=torch.float64)
    for *batch, t in torch.cartesian_prod(*map(torch.arange, q.shape[:-1])).tolist():
        here = tuple(batch)
        seen = [s for s in range(k.shape[-2]) if mask is None or mask[t, s]]
        scores = [(q[here][t] * k[here][s]).sum() / q.shape[-1] ** 0.5 for s in seen]
        powers = [(score - max(scores)).exp() for score in scores]
        for s, power in zip(seen, powers, strict=True):
            out[here][t] += power / sum(powers) * v[here][s]
    return out


def test_two_tokens_by_hand():
    close(attention_weights(Q, K), torch.tensor([[0.107042, 0.892958], [0.195570, 0.804430]]))
    want = torch.tensor([[3.571833, 0.107042], [3.217719, 0.195570]])
    close(dot_product_attention(Q, K, V), want, atol=1e-6, rtol=0)


def test_two_tokens_unscaled_by_hand():
    """Queries longer by sqrt(2) undo the division: the scores are [[1, 4], [2, 4]], so the
    weights are those of gaps of 3 and of 2."""
    out = dot_product_attention(2**0.5 * Q, K, V)
    a, b = 1 / (1 + torch.e**3), 1 / (1 + torch.e**2)
    close(out, torch.tensor([[4 * (1 - a), a], [4 * (1 - b), b]]))
    close(out[0, 0], torch.tensor(3.810297), atol=1e-6, rtol=0)


def test_two_tokens_with_a_causal_mask_by_hand():
    want = torch.tensor([[0.0, 1.0], [3.217719, 0.195570]])
    close(dot_product_attention(Q, K, V, causal_mask(2)), want, atol=1e-6, rtol=0)


def test_rows_of_weights_sum_to_one(qkv):
    q, k, _ = qkv
    close(attention_weights(q, k).sum(dim=-1), torch.ones(2, 3, 5))
    close(attention_weights(q, k, causal_mask(5, 7)).sum(dim=-1), torch.ones(2, 3, 5))


def test_adding_one_vector_to_every_key_changes_nothing(qkv):
    """It shifts all scores of a query alike, and softmax does not see a shift."""
    q, k, v = qkv
    shift = torch.randn(11, generator=generator(1))
    close(dot_product_attention(q, k + shift, v), dot_product_attention(q, k, v))


def test_the_order_of_the_keys_does_not_matter(qkv):
    q, k, v = qkv
    order = torch.randperm(7, generator=generator(2))
    close(dot_product_attention(q, k[..., order, :], v[..., order, :]), dot_product_attention(*qkv))


def test_keys_under_the_mask_have_no_influence_at_all(qkv):
    q, k, v = qkv
    mask = causal_mask(5, 7)
    want = dot_product_attention(q, k, v, mask)
    k[..., -1, :], v[..., -1, :] = 1e3, -1e3  # only the last query sees the last key
    assert torch.equal(dot_product_attention(q, k, v, mask)[..., :-1, :], want[..., :-1, :])


def test_equals_the_float64_oracle(qkv):
    close(dot_product_attention(*qkv).double(), oracle(*qkv), atol=1e-6, rtol=1e-5)
    mask = causal_mask(5, 7)
    close(dot_product_attention(*qkv, mask).double(), oracle(*qkv, mask), atol=1e-6, rtol=1e-5)


def test_agrees_with_torch(qkv):
    close(dot_product_attention(*qkv), F.scaled_dot_product_attention(*qkv))
    mask = causal_mask(5, 7)
    close(dot_product_attention(*qkv, mask), F.scaled_dot_product_attention(*qkv, mask))


def test_gradients_agree_with_torch(qkv):
    mask = causal_mask(5, 7)
    ours, theirs = ([x.clone().requires_grad_() for x in qkv] for _ in range(2))
    dot_product_attention(*ours, mask).square().sum().backward()
    F.scaled_dot_product_attention(*theirs, mask).square().sum().backward()
    for x, y in zip(ours, theirs, strict=True):
        close(x.grad, y.grad, atol=1e-5, rtol=1e-4)  # sums over 13 values of either sign


def test_a_padding_mask_serves_all_queries_and_heads(qkv):
    q, k, v = qkv
    lengths = torch.tensor([7, 3])
    out = dot_product_attention(q, k, v, padding_mask(lengths, 7)[:, None])
    close(out[0], dot_product_attention(q[0], k[0], v[0]))
    close(out[1], dot_product_attention(q[1], k[1, :, :3], v[1, :, :3]))


def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients(qkv):
    q, k, v = (x.requires_grad_() for x in qkv)
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[2] = False
    out = dot_product_attention(q, k, v, mask)
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way, not only at its end
        out.sum().backward()
    assert out[:, :, 2].eq(0).all()
    assert out[:, :, [0, 1, 3, 4]].ne(0).all()
    assert all(x.grad.isfinite().all() for x in (q, k, v))
    assert q.grad[:, :, 2].eq(0).all()


def test_no_keys_at_all_gives_zeros():
    out = dot_product_attention(torch.ones(5, 11), torch.ones(0, 11), torch.ones(0, 13))
    assert torch.equal(out, torch.zeros(5, 13))


def test_huge_scores_stay_finite():
    """Scores of 1e4 and -1e4: the exponential overflows float32 from 89 on."""
    q = torch.tensor([[1e4, 0.0, 0.0, 0.0]], requires_grad=True)
    k = torch.tensor([[2.0, 0.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.0]])
    out = dot_product_attention(q, k, torch.tensor([[3.0], [5.0]]))
    out.sum().backward()
    assert out.item() == 3.0
    assert q.grad.isfinite().all()


def test_the_only_key_in_sight_gets_all_the_weight_however_bad_its_score():
    q = torch.tensor([[1e4, 0.0, 0.0, 0.0]])
    k = torch.tensor([[2.0, 0.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.0]])
    mask = torch.tensor([[False, True]])
    assert attention_weights(q, k, mask).tolist() == [[0.0, 1.0]]


def test_a_single_query_and_a_single_key():
    v = torch.tensor([[2.0, 3.0, 5.0]])
    assert torch.equal(dot_product_attention(torch.ones(1, 7), -torch.ones(1, 7), v), v)


def test_low_precision_keeps_its_type(qkv):
    q, k, v = (x.bfloat16() for x in qkv)
    out = dot_product_attention(q, k, v, causal_mask(5, 7))
    assert out.dtype == torch.bfloat16
    # bfloat16 keeps 8 bits: each of the few roundings on the way costs up to 1/256 of a value
    close(out.float(), dot_product_attention(*qkv, causal_mask(5, 7)), atol=0.05, rtol=0.05)


def test_a_key_of_another_width_is_refused_by_name(qkv):
    q, k, v = qkv
    with pytest.raises(TypeCheckError, match="d_head=11"):
        dot_product_attention(q, k[..., :8], v)


def test_a_mask_of_numbers_is_refused(qkv):
    with pytest.raises(TypeCheckError, match="mask"):
        dot_product_attention(*qkv, torch.ones(5, 7))
