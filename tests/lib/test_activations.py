"""The bends against PyTorch's, in values and gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close as close

from plainformer.activations import gelu, gelu_tanh, relu, silu

PAIRS = {
    "relu": (relu, F.relu),
    "gelu": (gelu, F.gelu),
    "gelu_tanh": (gelu_tanh, lambda x: F.gelu(x, approximate="tanh")),
    "silu": (silu, F.silu),
}


@pytest.mark.parametrize(("ours", "theirs"), PAIRS.values(), ids=PAIRS)
def test_agrees_with_torch_in_values_and_gradients(ours, theirs):
    x = torch.linspace(-6, 6, 241, dtype=torch.float64)  # 0 is among them
    results = []
    for bend in ours, theirs:
        own = x.clone().requires_grad_()
        y = bend(own)
        y.sum().backward()
        results.append((y, own.grad))
    for mine, reference in zip(*results, strict=True):
        close(mine, reference, rtol=1e-12, atol=1e-14)


def test_at_one_by_hand():
    """Phi(1) = 0.841345 and sigmoid(1) = 0.731059, from tables; the tanh form has 0.841192."""
    one = torch.tensor([1.0], dtype=torch.float64)
    close(gelu(one).item(), 0.841345, atol=1e-6, rtol=0)
    close(silu(one).item(), 0.731059, atol=1e-6, rtol=0)
    close(gelu_tanh(one).item(), 0.841192, atol=1e-6, rtol=0)


def test_the_two_forms_of_gelu_differ_by_less_than_the_docstring_says():
    x = torch.linspace(-10, 10, 20001, dtype=torch.float64)
    apart = (gelu(x) - gelu_tanh(x)).abs().max().item()
    assert 0.0004 < apart < 0.0005


@pytest.mark.parametrize("bend", [pair[0] for pair in PAIRS.values()], ids=PAIRS)
def test_large_numbers_pass_or_vanish(bend):
    """In float32, where a cube and an exponential overflow on the way."""
    x = torch.tensor([-1e30, -1e4, 1e4, 1e30])
    close(bend(x), torch.tensor([0.0, 0.0, 1e4, 1e30]))


@pytest.mark.parametrize("bend", [pair[0] for pair in PAIRS.values()], ids=PAIRS)
def test_what_is_no_number_stays_visible(bend):
    assert bend(torch.tensor([float("nan")])).isnan().all()
