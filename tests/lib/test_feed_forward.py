import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close as close

from plainformer.feed_forward import FeedForward
from plainformer.seeding import generator


def test_by_hand():
    """ReLU((1, 2) W_1 + b_1) = ReLU(3 - 4, 1, 2) = (0, 1, 2); then 0 * 9 + 1 * 1 + 2 * 10 + 0.5."""
    module = FeedForward(2, 3, activation=F.relu)
    with torch.no_grad():
        module.up_proj.weight.copy_(torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))
        module.up_proj.bias.copy_(torch.tensor([-4.0, 0.0, 0.0]))
        module.down_proj.weight.copy_(torch.tensor([[9.0, 1.0, 10.0], [0.0, 0.0, 0.0]]))
        module.down_proj.bias.copy_(torch.tensor([0.5, 7.0]))
    close(module(torch.tensor([1.0, 2.0])), torch.tensor([21.5, 7.0]))


def test_the_size_of_the_paper():
    """Two matrices of 512 x 2048, and the biases 2048 and 512."""
    count = sum(parameter.numel() for parameter in FeedForward(512, 2048).parameters())
    assert count == 2 * 512 * 2048 + 2048 + 512


def test_the_bend_is_gelu_unless_told_otherwise():
    """GELU(1) = Phi(1) = 0.841345, from a table of the normal distribution."""
    module = FeedForward(1, 1)
    with torch.no_grad():
        for linear in (module.up_proj, module.down_proj):
            linear.weight.fill_(1.0), linear.bias.zero_()
    close(module(torch.tensor([1.0])), torch.tensor([0.841345]), atol=1e-6, rtol=0)


def test_every_token_by_itself():
    module, x = FeedForward(5, 11), torch.randn(2, 3, 5, generator=generator(0))
    close(module(x)[1, 2], module(x[1, 2]))


@pytest.mark.parametrize(("d_model", "d_ff"), [(0, 3), (3, 0)])
def test_widths_below_one_are_refused(d_model, d_ff):
    with pytest.raises(ValueError, match="d_model and d_ff must be at least 1, got"):
        FeedForward(d_model, d_ff)
