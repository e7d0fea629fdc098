"""The norms against PyTorch's, in values, gradients and what they remember."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close as close

from plainformer.norms import BatchNorm, LayerNorm, RMSNorm
from plainformer.seeding import generator

B, T, D = 2, 5, 7


def test_by_hand():
    """Mean 4 and variance 9, so (1, 7) becomes (-1, 1); then twice that, plus one half."""
    norm = LayerNorm(2, eps=0.0)
    close(norm(torch.tensor([1.0, 7.0])), torch.tensor([-1.0, 1.0]))
    with torch.no_grad():
        norm.weight.fill_(2.0), norm.bias.fill_(0.5)
    close(norm(torch.tensor([1.0, 7.0])), torch.tensor([-1.5, 2.5]))


def test_eps_stands_under_the_root():
    """Variance 9 and eps 16: the root of 25."""
    close(LayerNorm(2, eps=16.0)(torch.tensor([1.0, 7.0])), torch.tensor([-0.6, 0.6]))


@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_agrees_with_torch_in_values_and_gradients(eps):
    g = generator(0)
    x, out = torch.randn(2, B, T, D, generator=g, dtype=torch.float64)
    ours, theirs = LayerNorm(D, eps=eps).double(), torch.nn.LayerNorm(D, eps=eps).double()
    weight, bias = torch.randn(2, D, generator=g, dtype=torch.float64)
    results = []
    for norm in ours, theirs:
        with torch.no_grad():
            norm.weight.copy_(weight), norm.bias.copy_(bias)
        own = x.clone().requires_grad_()
        y = norm(own)
        y.backward(out)
        results.append([y, own.grad, norm.weight.grad, norm.bias.grad])
    for mine, reference in zip(*results, strict=True):
        close(mine, reference)


def test_no_token_knows_of_another():
    x = torch.randn(B, T, D, generator=generator(1))
    other = x.clone()
    other[1, 3] = 100.0
    same = torch.ones(B, T, dtype=torch.bool)
    same[1, 3] = False
    norm = LayerNorm(D)
    assert torch.equal(norm(x)[same], norm(other)[same])


def test_a_vector_of_equal_numbers_becomes_the_bias():
    assert torch.equal(LayerNorm(D)(torch.full((D,), 3.0)), torch.zeros(D))


@pytest.mark.parametrize(("d_model", "eps"), [(0, 1e-5), (7, -1.0), (7, float("nan"))])
def test_sizes_that_cannot_work_are_refused(d_model, eps):
    with pytest.raises(ValueError, match="d_model must be at least 1 and eps at least 0, got"):
        LayerNorm(d_model, eps=eps)


# RMSNorm -------------------------------------------------------------------------------------


def test_rms_by_hand():
    """(1, 7): the mean square is 25, so each is divided by 5; then times 10."""
    norm = RMSNorm(2, eps=0.0)
    close(norm(torch.tensor([1.0, 7.0])), torch.tensor([0.2, 1.4]))
    with torch.no_grad():
        norm.weight.fill_(10.0)
    close(norm(torch.tensor([1.0, 7.0])), torch.tensor([2.0, 14.0]))


def test_eps_stands_under_the_root_of_rms_too():
    """25 and eps 144: the root of 169."""
    close(RMSNorm(2, eps=144.0)(torch.tensor([1.0, 7.0])), torch.tensor([1.0, 7.0]) / 13)


@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_rms_agrees_with_torch_in_values_and_gradients(eps):
    g = generator(0)
    x, out = torch.randn(2, B, T, D, generator=g, dtype=torch.float64) + 0.7
    weight = torch.randn(D, generator=g, dtype=torch.float64)
    results = []
    for norm in RMSNorm(D, eps=eps).double(), torch.nn.RMSNorm(D, eps=eps).double():
        with torch.no_grad():
            norm.weight.copy_(weight)
        own = x.clone().requires_grad_()
        y = norm(own)
        y.backward(out)
        results.append([y, own.grad, norm.weight.grad])
    for mine, reference in zip(*results, strict=True):
        close(mine, reference)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.floats(0.01, 100), shift=st.floats(1, 100))
def test_who_is_blind_to_scale_and_who_to_a_shift(seed, scale, shift):
    """LayerNorm to both, RMSNorm to scale alone; where the mean is 0 they agree."""
    x = torch.randn(3, D, generator=generator(seed), dtype=torch.float64)
    layer, rms = LayerNorm(D, eps=0.0).double(), RMSNorm(D, eps=0.0).double()
    close(layer(scale * x), layer(x))
    close(layer(x + shift), layer(x), rtol=1e-6, atol=1e-9)  # a shift of 100 costs three digits
    close(rms(scale * x), rms(x))
    assert (rms(x + shift) - rms(x)).abs().max() > 1e-4
    centred = x - x.mean(dim=-1, keepdim=True)
    close(rms(centred), layer(x))


def test_the_slope_of_layer_norm_is_the_formula_of_chapter_nine():
    r"""(1 / sigma) (I - 1 1^T / d - x_hat x_hat^T / d): of length 1 / sigma, blind in two ways."""
    x = 2 * torch.randn(D, generator=generator(5), dtype=torch.float64)
    slope = torch.autograd.functional.jacobian(LayerNorm(D, eps=0.0).double(), x)
    sigma = x.std(correction=0)
    hat = (x - x.mean()) / sigma
    ones = torch.ones(D, dtype=torch.float64)
    want = (torch.eye(D) - torch.outer(ones, ones) / D - torch.outer(hat, hat) / D) / sigma
    close(slope, want)
    stretch = torch.linalg.svdvals(slope)
    close(stretch[0], 1 / sigma)
    assert (stretch < 1e-12).sum() == 2
    rms = torch.autograd.functional.jacobian(RMSNorm(D, eps=0.0).double(), x)
    assert (torch.linalg.svdvals(rms) < 1e-12).sum() == 1


# BatchNorm -----------------------------------------------------------------------------------


def test_batch_by_hand():
    """Over (1, 2, 3, 4): mean 2.5, variance 1.25 to norm with, 5/3 to remember."""
    norm = BatchNorm(1, eps=0.0)
    x = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    want = torch.tensor([[-1.341641], [-0.447214], [0.447214], [1.341641]])
    close(norm(x), want, atol=1e-6, rtol=0)
    close(norm.running_mean, torch.tensor([0.25]))
    close(norm.running_variance, torch.tensor([0.9 + 0.1 * 5 / 3]))
    norm.eval()
    close(norm(x), (x - 0.25) / (0.9 + 0.1 * 5 / 3) ** 0.5)


@pytest.mark.parametrize("momentum", [0.1, 0.75, 0.0, 1.0])
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_batch_agrees_with_torch_in_both_modes(momentum, eps):
    g = generator(0)
    ours = BatchNorm(D, eps=eps, momentum=momentum).double()
    theirs = torch.nn.BatchNorm1d(D, eps=eps, momentum=momentum).double()
    weight, bias = torch.randn(2, D, generator=g, dtype=torch.float64)
    for norm in ours, theirs:
        with torch.no_grad():
            norm.weight.copy_(weight), norm.bias.copy_(bias)
    for training in (True, True, False, True, False):
        x, out = torch.randn(2, B, T, D, generator=g, dtype=torch.float64) * 3 + 1
        results = []
        for norm, axes in (ours, (0, 1, 2)), (theirs, (0, 2, 1)):  # torch wants the width second
            norm.train(training).zero_grad()
            own = x.clone().requires_grad_()
            y = norm(own.permute(axes)).permute(axes)
            y.backward(out)
            results.append([y, own.grad, norm.weight.grad, norm.bias.grad])
        for mine, reference in zip(*results, strict=True):
            close(mine, reference)
        close(ours.running_mean, theirs.running_mean)
        close(ours.running_variance, theirs.running_var)


def test_in_training_a_vector_depends_on_its_neighbours_and_in_evaluation_not():
    x = torch.randn(B, T, D, generator=generator(1))
    other = x.clone()
    other[1, 3] = 100.0
    norm = BatchNorm(D)
    assert not torch.equal(copy.deepcopy(norm)(x)[0, 0], copy.deepcopy(norm)(other)[0, 0])
    norm(x), norm.eval()
    assert torch.equal(norm(x)[0, 0], norm(other)[0, 0])
    close(norm(x)[1, 3], norm(x[1, 3]))


def test_in_evaluation_nothing_is_remembered():
    norm = BatchNorm(D).eval()
    norm(torch.randn(B, T, D, generator=generator(1)))
    assert norm.running_mean.eq(0).all()
    assert norm.running_variance.eq(1).all()


def test_what_is_remembered_is_saved_and_not_learned():
    norm = BatchNorm(D)
    assert set(norm.state_dict()) == {"weight", "bias", "running_mean", "running_variance"}
    assert len(list(norm.parameters())) == 2
    norm(torch.randn(B, D, generator=generator(0), requires_grad=True))
    assert not norm.running_mean.requires_grad


@pytest.mark.parametrize("shape", [(D,), (1, D), (1, 1, D), (0, D)])
def test_fewer_than_two_vectors_cannot_train(shape):
    norm = BatchNorm(D)
    with pytest.raises(ValueError, match=r"training needs at least two vectors, got [01]"):
        norm(torch.ones(shape))
    assert norm.eval()(torch.ones(shape)).isfinite().all()


@pytest.mark.parametrize("norm", [RMSNorm, BatchNorm])
@pytest.mark.parametrize(("d_model", "eps"), [(0, 1e-5), (7, -1.0), (7, float("nan"))])
def test_sizes_that_cannot_work_are_refused_by_all_norms(norm, d_model, eps):
    with pytest.raises(ValueError, match="d_model must be at least 1 and eps at least 0, got"):
        norm(d_model, eps=eps)


@pytest.mark.parametrize("momentum", [-0.1, 1.1, float("nan")])
def test_a_momentum_that_is_no_weight_is_refused(momentum):
    with pytest.raises(ValueError, match=r"momentum must be in \[0, 1\], got .* Keras"):
        BatchNorm(D, momentum=momentum)
