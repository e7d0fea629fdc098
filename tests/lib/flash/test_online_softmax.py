import math

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.flash.online_softmax import RunningSoftmax, merge_parts, split_keys_attention
from plainformer.flash.semantics import kept_mask, reference_attention
from plainformer.seeding import generator


def randn(*shape, seed=0):
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


def in_pieces(scores, v, sizes):
    running = RunningSoftmax.start(scores.shape[:-1], v.shape[-1], like=scores)
    for part, values in zip(scores.split(sizes, dim=-1), v.split(sizes, dim=-2), strict=True):
        running = running.meet(part, values)
    return running


def test_by_hand():
    """Scores 0, then log 3: weights 1/4 and 3/4; the largest is log 3, the sum 1/3 + 1."""
    scores, v = torch.tensor([[0.0, math.log(3)]]), torch.tensor([[4.0], [8.0]])
    running = in_pieces(scores, v, [1, 1])
    close(running.largest, torch.tensor([[math.log(3)]]))
    close(running.total, torch.tensor([[4 / 3]]))
    o, lse = running.finish()
    close(o, torch.tensor([[7.0]]))
    close(lse, torch.tensor([math.log(4)]))


@pytest.mark.parametrize("sizes", [[17], [1] * 17, [5, 11, 1], [16, 1]])
@pytest.mark.parametrize("size", [1.0, 300.0])
def test_however_the_keys_are_cut_it_is_softmax(sizes, size):
    scores, v = size * randn(2, 3, 5, 17), randn(2, 3, 17, 7, seed=1)
    o, lse = in_pieces(scores, v, sizes).finish()
    close(o, scores.softmax(-1) @ v)
    close(lse, scores.logsumexp(-1))


def test_scores_beyond_exp_do_not_overflow_in_either_order():
    scores, v = torch.tensor([[-1e4, 1e4, 0.0]]), torch.tensor([[1.0], [2.0], [3.0]])
    for order in ([0, 1, 2], [1, 2, 0]):
        o, lse = in_pieces(scores[:, order], v[order], [1, 1, 1]).finish()
        assert o.item() == 2.0
        assert lse.item() == 1e4


def test_pieces_that_a_row_does_not_see_change_nothing():
    scores, v = randn(5, 11), randn(11, 7, seed=1)
    scores[0], scores[1, :8], scores[2, 8:], scores[3, 3:9] = (-math.inf,) * 4
    o, lse = in_pieces(scores, v, [4, 4, 3]).finish()
    assert o[0].eq(0).all()
    assert lse[0] == -math.inf
    close(o[1:], scores[1:].softmax(-1) @ v)
    close(lse[1:], scores[1:].logsumexp(-1))


def test_merged_parts_are_the_whole():
    scores, v = randn(3, 5, 13), randn(3, 13, 7, seed=1)
    parts = [
        in_pieces(scores[..., p], v[..., p, :], [6]).finish() for p in (slice(6), slice(6, 12))
    ]
    parts.append(in_pieces(scores[..., 12:], v[..., 12:, :], [1]).finish())
    o, lse = (torch.stack(x) for x in zip(*parts, strict=True))
    whole, whole_lse = in_pieces(scores, v, [13]).finish()
    for order in ([0, 1, 2], [2, 0, 1]):
        got, got_lse = merge_parts(o[order], lse[order])
        close(got, whole)
        close(got_lse, whole_lse)


def test_a_part_that_saw_nothing_has_no_say():
    o, lse = randn(2, 3, 5), randn(2, 3, seed=1)
    o[1], lse[1] = 0.0, -math.inf
    got, got_lse = merge_parts(o, lse)
    assert torch.equal(got, o[0])
    assert torch.equal(got_lse, lse[0])
    lse[0, 0], o[0, 0] = -math.inf, 0.0
    got, got_lse = merge_parts(o, lse)
    assert got[0].eq(0).all()
    assert got_lse[0] == -math.inf


@pytest.mark.parametrize("splits", [1, 2, 5, 23, 100])
@pytest.mark.parametrize("window", [(None, None), (None, 0), (7, 0), (2, 3)])
@pytest.mark.parametrize("t", [1, 3, 29])
def test_split_keys_give_the_same_attention(splits, window, t):
    q, k, v = randn(2, 3, t, 5), randn(2, 3, 23, 5, seed=1), randn(2, 3, 23, 7, seed=2)
    o, lse = split_keys_attention(q, k, v, splits=splits, window=window)
    want, want_lse = reference_attention(q, k, v, window=window)
    close(o, want)
    close(lse, want_lse)


def test_keys_that_no_query_sees_are_not_read():
    q, k, v = randn(1, 5), randn(23, 5, seed=1), randn(23, 7, seed=2)
    k[:15], v[:15] = math.nan, math.nan
    assert split_keys_attention(q, k, v, splits=3, window=(7, 0))[0].isfinite().all()


def test_without_keys_there_are_zeros():
    o, lse = split_keys_attention(randn(2, 3, 5), randn(2, 0, 5), randn(2, 0, 7), splits=3)
    assert o.shape == (2, 3, 7)
    assert o.eq(0).all()
    assert lse.eq(-math.inf).all()


def test_gradients_pass_a_numerical_check():
    inputs = [randn(3, 4).requires_grad_(), randn(7, 4, seed=1), randn(7, 2, seed=2)]
    run = lambda *x: split_keys_attention(*x, splits=3, window=(3, 0))  # noqa: E731
    assert kept_mask(3, 7, (3, 0)).any(-1).all()
    assert torch.autograd.gradcheck(run, [x.requires_grad_() for x in inputs])


def test_zero_splits_are_refused():
    with pytest.raises(ValueError, match="splits must be at least 1, got 0"):
        split_keys_attention(randn(1, 5), randn(3, 5), randn(3, 5), splits=0)
