import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close as close

from plainformer.activations import gelu, silu
from plainformer.feed_forward import FeedForward, GatedFeedForward, gated_width
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


def test_the_bend_can_be_ours_to_read():
    x = torch.randn(3, 5, generator=generator(0), dtype=torch.float64)
    fast, plain = FeedForward(5, 11).double(), FeedForward(5, 11, gelu).double()
    plain.load_state_dict(fast.state_dict())
    close(plain(x), fast(x))


# With a gate ---------------------------------------------------------------------------------


def test_gated_by_hand():
    """x = 2: the gate opens to ReLU(3) = 3, the other way is 10, so 30; times 0.5 is 15."""
    module = GatedFeedForward(1, 1, F.relu)
    with torch.no_grad():
        module.gate_proj.weight.fill_(1.5), module.up_proj.weight.fill_(5.0)
        module.down_proj.weight.fill_(0.5)
    close(module(torch.tensor([2.0])), torch.tensor([15.0]))


@pytest.mark.parametrize("bias", [False, True])
def test_gated_agrees_with_an_einsum_and_torch_glu(bias):
    """PyTorch's GLU is sigmoid(b) * a; SiLU(g) u is g * GLU([u, g])."""
    module = GatedFeedForward(5, 11, bias=bias).double()
    x = torch.randn(2, 3, 5, generator=generator(0), dtype=torch.float64, requires_grad=True)
    gate, up, down = (
        (layer.weight, layer.bias if bias else torch.zeros(()))
        for layer in (module.gate_proj, module.up_proj, module.down_proj)
    )
    g, u = (torch.einsum("bti,oi->bto", x, weight) + b for weight, b in (gate, up))
    want = torch.einsum("bti,oi->bto", g * F.glu(torch.cat([u, g], dim=-1)), down[0]) + down[1]
    close(module(x), want)
    assert sum(p.numel() for p in module.parameters()) == 3 * 5 * 11 + (2 * 11 + 5) * bias
    slopes = [torch.autograd.grad(y.sum(), x, retain_graph=True)[0] for y in (module(x), want)]
    close(*slopes)


def test_the_gate_bends_with_silu_unless_told_otherwise():
    module, other = GatedFeedForward(5, 11), GatedFeedForward(5, 11, silu)
    other.load_state_dict(module.state_dict())
    x = torch.randn(2, 3, 5, generator=generator(0))
    close(module(x), other(x))
    assert (GatedFeedForward(5, 11, F.gelu)(x) - module(x)).abs().max() > 1e-3


def test_two_thirds_cost_the_same():
    """Llama 7B: 135,266,304 weights with a gate, 134,217,728 in a plain layer of width 4d."""
    width = gated_width(4 * 4096, multiple_of=256)
    assert (width, 3 * 4096 * width) == (11008, 135_266_304)
    assert 2 * 4096 * 4 * 4096 == 134_217_728
    assert 3 * 12 * gated_width(48) == 2 * 12 * 48


@pytest.mark.parametrize(
    ("d_ff", "multiple_of", "want"),
    [(2, 1, 1), (4, 1, 2), (1024, 1, 682), (1024, 256, 768), (384, 256, 256), (385, 256, 256)],
)
def test_rounded_down_then_up(d_ff, multiple_of, want):
    """Floor of two thirds, then the next multiple: 682.67 is 682, then 768; 256 stays."""
    assert gated_width(d_ff, multiple_of) == want


def test_widths_without_a_gate_are_refused():
    with pytest.raises(ValueError, match="d_ff must be at least 2, got 1"):
        gated_width(1)
    with pytest.raises(ValueError, match="multiple_of must be at least 1, got 0"):
        gated_width(64, 0)
    with pytest.raises(ValueError, match="d_model and d_ff must be at least 1, got"):
        GatedFeedForward(0, 3)
