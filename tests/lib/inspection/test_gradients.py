import pytest
import torch
from torch import nn

from plainformer.inspection.gradients import gradient_norms, rms_by_depth
from plainformer.seeding import generator


def test_by_hand():
    """L = sum of w^2 has the gradient 2w: for (3, 4) that is (6, 8), of length 10."""
    w, unused = nn.Parameter(torch.tensor([3.0, 4.0])), nn.Parameter(torch.ones(2))
    assert gradient_norms(w.square().sum(), [w, unused]) == [10.0, 0.0]


def test_the_same_as_backward_and_nothing_is_added_to_grad():
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 7)).double()
    x = torch.randn(2, 3, generator=generator(0), dtype=torch.float64)
    got = gradient_norms(model(x).square().sum(), model.parameters())
    assert all(p.grad is None for p in model.parameters())
    model(x).square().sum().backward()
    want = [torch.linalg.vector_norm(p.grad).item() for p in model.parameters()]
    assert got == pytest.approx(want, rel=1e-12)


class Twice(nn.Module):
    def forward(self, x, plus=0.0):
        return 2 * x + plus


def test_the_stream_is_measured_before_and_behind_each_block():
    """(3, -4) has the mean square 12.5; each block doubles the root of that."""
    x = torch.tensor([[[3.0, -4.0]]], requires_grad=True)
    sizes = rms_by_depth([Twice(), Twice()], x)
    assert sizes == pytest.approx([12.5**0.5, 2 * 12.5**0.5, 4 * 12.5**0.5])
    assert x.grad is None


def test_what_is_named_besides_reaches_every_block():
    """From 0, plus 1 each time: 1, then 3."""
    assert rms_by_depth([Twice(), Twice()], torch.zeros(1, 1, 1), plus=1.0) == [0.0, 1.0, 3.0]
