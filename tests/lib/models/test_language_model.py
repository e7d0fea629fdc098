"""The small language model against PyTorch, and what each way of telling positions does."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.models.language_model import LanguageModel
from plainformer.positions import (
    RelativeBias,
    Rotary,
    alibi_bias,
    alibi_slopes,
    causal_buckets,
    frequencies,
    sinusoidal_table,
)
from plainformer.seeding import generator
from tests.lib.test_blocks import like_torch

B, T, VOCAB, D, H, L, D_FF = 2, 7, 13, 21, 3, 2, 11


def make(**positions) -> LanguageModel:
    """A model in float64 whose weights depend on nothing but this function."""
    model = LanguageModel(VOCAB, D, H, L, D_FF, **positions).double()
    g = generator(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g, dtype=torch.float64) / 3)
    return model


@pytest.fixture
def ids():
    return torch.randint(VOCAB, (B, T), generator=generator(0))


def test_agrees_with_torch(ids):
    table = partial(sinusoidal_table, d_model=D - 1, dtype=torch.float64)
    wide = lambda positions: torch.nn.functional.pad(table(positions), (0, 1))  # noqa: E731
    model = make(table=wide)
    x = model.embed(ids) + wide(torch.arange(T))
    ahead = torch.ones(T, T, dtype=torch.bool).triu(diagonal=1)
    for block in model.blocks:
        x = like_torch(block)(x, src_mask=ahead)
    norm = torch.nn.functional.layer_norm(x, (D,), model.norm.weight, model.norm.bias)
    close(model(ids), norm @ model.readout.weight.T + model.readout.bias)


def test_without_positions_and_mask_order_does_not_show(ids):
    order = torch.randperm(T, generator=generator(1))
    model = make(causal=False)
    close(model(ids[:, order]), model(ids)[:, order])


WAYS = {
    "a causal mask alone": lambda: {},
    "a learned table": lambda: {"table": torch.nn.Embedding(T, D), "causal": False},
    "a rotation": lambda: {"rotary": Rotary(frequencies=frequencies(6)), "causal": False},
    "buckets": lambda: {"position_bias": RelativeBias(H, causal_buckets), "causal": False},
    "slopes": lambda: {
        "position_bias": partial(alibi_bias, slopes=alibi_slopes(H).double()),
        "causal": False,
    },
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_each_way_of_telling_positions_makes_order_show(way, ids):
    how = way()
    if "rotary" in how:
        sizes = (VOCAB, 18, H, L, D_FF)  # an even width for each head
        model = LanguageModel(*sizes, **how)
    else:
        model = make(**how)
    # No mirror image: slopes go by distance to either side, and cannot tell it from the original.
    order = torch.tensor([2, 0, 1, 5, 3, 6, 4])
    difference = model(ids[:, order]) - model(ids)[:, order]
    assert difference.abs().max() > 1e-3


def test_nobody_looks_ahead(ids):
    other = ids.clone()
    other[:, 4:] = (other[:, 4:] + 1) % VOCAB
    model = make()
    assert torch.equal(model(ids)[:, :4], model(other)[:, :4])
    assert not torch.equal(model(ids)[:, 4:], model(other)[:, 4:])


def test_one_bias_serves_all_layers():
    bias = RelativeBias(H, causal_buckets)
    with_bias = sum(p.numel() for p in make(position_bias=bias).parameters())
    without = sum(p.numel() for p in make().parameters())
    assert with_bias - without == bias.n_buckets * H


@pytest.mark.parametrize(("vocab", "n_layers"), [(0, 2), (13, 0)])
def test_counts_below_one_are_refused(vocab, n_layers):
    with pytest.raises(ValueError, match="vocab and n_layers must be at least 1, got"):
        LanguageModel(vocab, D, H, n_layers, D_FF)
