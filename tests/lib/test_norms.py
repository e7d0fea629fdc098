import pytest
import torch
from torch.testing import assert_close as close

from plainformer.norms import LayerNorm
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
