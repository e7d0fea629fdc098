"""Dropout against PyTorch's, which gives away the mask that it drew."""

import copy

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.dropout import Dropout, dropout
from plainformer.seeding import generator

B, T, D = 2, 5, 7


@pytest.fixture
def x():
    return torch.randn(B, T, D, generator=generator(0), dtype=torch.float64)


def test_by_hand():
    """A quarter goes, so what stays counts 4/3."""
    kept = torch.tensor([True, False, True, True])
    close(dropout(torch.tensor([3.0, 6.0, 9.0, -3.0]), kept, 0.25), torch.tensor([4, 0, 12, -4.0]))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_agrees_with_torch_on_the_mask_that_torch_drew(x, p):
    theirs = x.clone().requires_grad_()
    want, kept = torch.native_dropout(theirs, p, True)
    ours = x.clone().requires_grad_()
    got = Dropout(p)(ours, kept)
    close(got, want)
    out = torch.randn(B, T, D, generator=generator(1), dtype=torch.float64)
    got.backward(out), want.backward(out)
    close(ours.grad, theirs.grad)


def test_one_mask_can_serve_many_tokens(x):
    kept = torch.arange(D) != 3
    got = dropout(x, kept, 0.5)
    assert torch.equal(got, torch.where(kept, 2 * x, 0.0))


def test_what_was_not_finite_is_gone_when_it_is_dropped():
    x = torch.tensor([float("inf"), 1.0])
    assert torch.equal(dropout(x, torch.tensor([False, True]), 0.5), torch.tensor([0.0, 2.0]))


def test_the_share_and_the_mean_are_what_was_asked_for():
    """Of 100,000 ones 30 % go: five standard deviations are 0.0072 for the share."""
    y = Dropout(0.3, generator(0))(torch.ones(100_000))
    close(y.eq(0).double().mean().item(), 0.3, atol=0.0072, rtol=0)
    close(y.mean().item(), 1.0, atol=0.0072 / 0.7, rtol=0)


def test_in_evaluation_nothing_happens(x):
    kept = torch.zeros(D, dtype=torch.bool)
    assert Dropout(0.9).eval()(x) is x
    assert Dropout(0.9).eval()(x, kept) is x


def test_the_own_generator_alone_decides(x):
    once = Dropout(0.5, generator(0))(x)
    before = torch.get_rng_state()
    again = Dropout(0.5, generator(0))(x)
    assert torch.equal(once, again)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(once, Dropout(0.5, generator(1))(x))


def test_every_call_draws_anew_and_a_copy_draws_the_same(x):
    layer = Dropout(0.5, generator(0))
    twin = copy.deepcopy(layer)
    first = layer(x)
    assert not torch.equal(first, layer(x))
    assert torch.equal(first, twin(x))


def test_a_probability_of_zero_changes_nothing(x):
    assert torch.equal(Dropout(0.0)(x), x)


@pytest.mark.parametrize("p", [1.0, -0.1, float("nan")])
def test_what_is_no_probability_below_one_is_refused(x, p):
    with pytest.raises(ValueError, match=r"p must be in \[0, 1\), got"):
        Dropout(p)
    with pytest.raises(ValueError, match=r"p must be in \[0, 1\), got"):
        dropout(x, torch.ones(D, dtype=torch.bool), p)
