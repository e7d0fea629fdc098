import pytest
import torch
from torch import nn

from plainformer.initialise import xavier_
from plainformer.norms import LayerNorm
from plainformer.seeding import generator


@pytest.mark.parametrize("gain", [1.0, 0.25])
def test_the_spread_is_that_of_the_paper(gain):
    """2 / (300 + 500) is 0.05 squared; of 150,000 numbers, five standard deviations are 0.91 %."""
    layer = xavier_(nn.Linear(300, 500), generator=generator(0), gain=gain)
    assert abs(layer.weight.std().item() / (0.05 * gain) - 1) < 0.0091
    assert abs(layer.weight.mean().item()) < 5 * 0.05 * gain / 150_000**0.5


def test_biases_become_zero_and_only_linear_layers_change():
    model = nn.Sequential(nn.Embedding(3, 5), nn.Linear(5, 7), nn.Linear(7, 2, bias=False))
    model.append(LayerNorm(2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert xavier_(model, generator=generator(0)) is model
    changed = {n for n, value in model.state_dict().items() if not torch.equal(value, before[n])}
    assert changed == {"1.weight", "1.bias", "2.weight"}
    assert model[1].bias.eq(0).all()


def test_the_generator_alone_decides():
    layers = [nn.Linear(5, 7) for _ in range(3)]
    before = torch.get_rng_state()
    for layer, seed in zip(layers, (0, 0, 1), strict=True):
        xavier_(layer, generator=generator(seed))
    assert torch.equal(layers[0].weight, layers[1].weight)
    assert not torch.equal(layers[0].weight, layers[2].weight)
    assert torch.equal(torch.get_rng_state(), before)
