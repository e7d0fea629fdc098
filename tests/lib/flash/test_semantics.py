import math

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.attention.dot_product import dot_product_attention
from plainformer.attention.grouped_query import grouped_query_attention
from plainformer.flash.semantics import (
    as_window,
    check_arguments,
    keep,
    kept_mask,
    key_range,
    reference_attention,
)
from plainformer.masks import causal_mask, padding_mask, window_mask
from plainformer.seeding import generator

LENGTHS = [(5, 5), (3, 7), (7, 3), (1, 5), (5, 1), (0, 3), (3, 0)]


def qkv(b=2, h=6, g=3, t=5, s=7, d_head=11, d_value=13, dtype=torch.float64):
    rng = generator(0)
    sizes = [(b, h, t, d_head), (b, g, s, d_head), (b, g, s, d_value)]
    return [torch.randn(size, generator=rng, dtype=dtype) for size in sizes]


def test_by_hand_what_is_kept():
    want = [[0, 1, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert kept_mask(2, 5, (2, 0))[0, 0].int().tolist() == want
    assert kept_mask(2, 5, (0, 1), torch.tensor([5, 4]))[:, 0].int().tolist() == [
        [[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]],
        [[0, 0, 0, 1, 0], [0, 0, 0, 0, 0]],
    ]


@pytest.mark.parametrize(("t", "s"), LENGTHS)
def test_the_masks_are_those_of_the_rest_of_the_library(t, s):
    assert torch.equal(kept_mask(t, s, (None, 0))[0, 0], causal_mask(t, s))
    for left, right in [(0, 0), (2, 1), (1, 3), (50, 60)]:
        assert torch.equal(
            kept_mask(t, s, (left, right))[0, 0], window_mask(t, s, left=left, right=right)
        )
    lengths = torch.tensor([s, s // 2, 0])
    both = causal_mask(t, s) & padding_mask(lengths, s)
    assert torch.equal(kept_mask(t, s, (None, 0), lengths)[:, 0], both)


@pytest.mark.parametrize("window", [(None, None), (None, 0), (2, None), (2, 1), (0, 0), (9, 9)])
@pytest.mark.parametrize(("t", "s"), LENGTHS[:5])
def test_ranges_are_what_some_and_all_queries_see(t, s, window):
    kept = kept_mask(t, s, window)[0, 0]
    for first in range(t):
        for last in range(first, t):
            low, high, all_low, all_high = key_range(first, last, s - t, s, *window)
            some, every = kept[first : last + 1].any(0), kept[first : last + 1].all(0)
            assert some.nonzero().flatten().tolist() == list(range(low, high))
            assert every.nonzero().flatten().tolist() == list(range(all_low, all_high))


@pytest.mark.parametrize("window", [(None, None), (None, 0), (2, None), (2, 1), (0, 0)])
@pytest.mark.parametrize(("t", "s"), LENGTHS[:5])
def test_read_the_other_way_round_they_are_the_queries_that_see_a_key(t, s, window):
    kept, (left, right) = kept_mask(t, s, window)[0, 0], window
    for first in range(s):
        for last in range(first, s):
            low, high, all_low, all_high = key_range(first, last, t - s, t, right, left)
            some, every = kept[:, first : last + 1].any(1), kept[:, first : last + 1].all(1)
            assert some.nonzero().flatten().tolist() == list(range(low, high))
            assert every.nonzero().flatten().tolist() == list(range(all_low, all_high))


def test_a_window_wider_than_the_text_does_not_overflow():
    assert as_window(False, (10**12, 10**12), 5, 7) == (12, 12)
    assert kept_mask(5, 7, as_window(True, (10**12, None), 5, 7)).sum() == causal_mask(5, 7).sum()


def test_keep_takes_numbers_as_well():
    assert keep(0, 4, shift=4, length=5, left=0, right=0)
    assert not keep(0, 4, shift=4, length=4, left=0, right=0)


def test_the_reference_agrees_with_the_rest_of_the_library():
    q, k, v = qkv()
    o, _ = reference_attention(q, k, v, causal=True, window=(2, 5), scale=0.3)
    close(o, grouped_query_attention(q, k, v, window_mask(5, 7, left=2), scale=0.3))
    q, k, v = qkv(h=3)
    o, lse = reference_attention(q, k, v, key_lengths=torch.tensor([7, 4]))
    close(o, dot_product_attention(q, k, v, padding_mask(torch.tensor([7, 4]), 7)[:, None]))
    scores = q @ k.mT / 11**0.5
    close(lse[0], scores[0].logsumexp(-1))
    close(lse[1], scores[1, ..., :4].logsumexp(-1))


def test_the_reference_gives_zeros_to_a_query_that_sees_nothing():
    q, k, v = (x.requires_grad_() for x in qkv(t=7, s=3))
    o, lse = reference_attention(q, k, v, causal=True)
    o.sum().backward()
    assert o[:, :, :4].eq(0).all()
    assert lse[:, :, :4].eq(-math.inf).all()
    assert q.grad[:, :, :4].eq(0).all()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_the_reference_does_not_hide_a_nan():
    """A reference that did once let a broken kernel pass (cubecl 1070)."""
    q, k, v = qkv()
    k[0, 0, 2, 0] = math.nan
    o, lse = reference_attention(q, k, v)
    assert o[0, :2].isnan().all()
    assert lse[0, :2].isnan().all()
    assert o[0, 2:].isfinite().all()


def test_the_gradients_of_the_reference_pass_a_numerical_check():
    q, k, v = (x.requires_grad_() for x in qkv(b=1, h=2, g=1, t=3, s=4, d_head=3, d_value=2))
    rules = {"window": (1, 1), "key_lengths": torch.tensor([3])}
    assert torch.autograd.gradcheck(lambda *x: reference_attention(*x, **rules), (q, k, v))


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"q": lambda q: q[0]}, ValueError, r"q must have four axes .* write q\[None, None\]"),
        ({"v": lambda v: v.long()}, TypeError, "v must hold floating-point numbers, got torch.int"),
        (
            {"k": lambda k: k.half()},
            ValueError,
            r"share dtype .* k in torch.float16.*use k.to\(q\)",
        ),
        (
            {"k": lambda k: k[..., :7]},
            ValueError,
            "q and k must be equally wide, got d_head=11 and",
        ),
        ({"k": lambda k: k[:1]}, ValueError, "one batch size, got 2, 1 and 2"),
        ({"v": lambda v: v[:, :, :3]}, ValueError, "agree in heads and positions"),
        ({"q": lambda q: q[:, :5]}, ValueError, "n_heads must be a multiple of n_kv_heads"),
        ({"v": lambda v: v[..., :0]}, ValueError, "d_value must be at least 1"),
        ({"scale": lambda _: math.nan}, ValueError, "scale must be finite, got nan; None is 1"),
        ({"key_lengths": lambda _: torch.tensor([7])}, ValueError, "one integer for each of the 2"),
        ({"key_lengths": lambda _: torch.ones(2)}, ValueError, "one integer for each"),
        (
            {"key_lengths": lambda _: torch.tensor([8, -1])},
            ValueError,
            r"between 0 and s=7, got \[8, -1\]; s is the padded length",
        ),
        (
            {"key_lengths": lambda _: torch.ones(2, dtype=torch.int32, device="meta")},
            ValueError,
            "key_lengths must be on the device of q, cpu, got meta",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(change, error, says):
    given = dict(zip("qkv", qkv(), strict=True)) | {"key_lengths": None, "scale": None}
    for name, alter in change.items():
        given[name] = alter(given[name])
    with pytest.raises(error, match=says):
        check_arguments(**given)


def test_a_window_with_a_side_below_zero_is_refused():
    with pytest.raises(ValueError, match=r"sides of at least 0, got right=-1; each counts"):
        as_window(False, (3, -1), 5, 5)
