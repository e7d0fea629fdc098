"""The Transformer against PyTorch's, with the same weights; who sees whom; that it learns."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close as close

from plainformer.data.batching import shift_right
from plainformer.data.dates import date_chars
from plainformer.data.toy import START, reversal
from plainformer.generation.greedy import greedy
from plainformer.losses import cross_entropy
from plainformer.masks import causal_mask
from plainformer.models.transformer import BASE, BIG, DATES, DEBUG, Transformer, TransformerConfig
from plainformer.seeding import generator
from plainformer.training.loop import train
from plainformer.training.schedules import warmup_inverse_sqrt
from tests.lib.test_blocks import like_torch

B, S, T = 2, 7, 5


def make(**changes) -> Transformer:
    """A small model in float64 whose weights depend on nothing but this function."""
    config = dataclasses.replace(DEBUG, **changes)
    model = Transformer(config, generator=generator(0)).double()
    g = generator(3)
    with torch.no_grad():  # norms and biases too, which start as ones and zeros
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.copy_(torch.randn(parameter.shape, generator=g, dtype=torch.float64))
    return model


@pytest.fixture
def batch():
    g = generator(1)
    source, shifted = (torch.randint(DEBUG.vocab_size, (B, n), generator=g) for n in (S, T))
    return source, shifted, torch.arange(S) < torch.tensor([[7], [4]])


def by_hand(positions: int) -> torch.Tensor:
    """The table of the paper, number by number: sine and cosine of p / 10000^(2i / d)."""
    d = DEBUG.d_model
    table = torch.zeros(positions, d, dtype=torch.float64)
    for p in range(positions):
        for i in range(d // 2):
            angle = torch.tensor(p / 10000 ** (2 * i / d), dtype=torch.float64)
            table[p, 2 * i], table[p, 2 * i + 1] = angle.sin(), angle.cos()
    return table


def torch_twin(model: Transformer) -> nn.Transformer:
    """PyTorch's stacks with copies of our weights, and a last norm only where we have one."""
    twin = nn.Transformer(DEBUG.d_model, DEBUG.n_heads, 1, 1, 1, batch_first=True)
    # Set from outside: its constructor would draw the weights of stacks anew that it is given.
    twin.encoder, twin.decoder = (
        torch_stack(model.encoder, model.encoder_norm, nn.TransformerEncoder),
        torch_stack(model.decoder, model.decoder_norm, nn.TransformerDecoder),
    )
    return twin


def torch_stack(blocks: nn.ModuleList, norm: nn.Module, kind: type) -> nn.Module:
    layers = [like_torch(block) for block in blocks]
    last = None
    if not isinstance(norm, nn.Identity):
        last = nn.LayerNorm(DEBUG.d_model).double()
        last.load_state_dict(norm.state_dict())
    more = {"enable_nested_tensor": False} if kind is nn.TransformerEncoder else {}
    stack = kind(layers[0], len(layers), norm=last, **more)
    stack.layers = nn.ModuleList(layers)  # else it repeats the first
    return stack


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_agrees_with_torch_in_values_and_gradients(batch, norm_order):
    source, shifted, sees = batch
    model = make(norm_order=norm_order)
    twin, table = torch_twin(model), model.embed.weight.detach().clone().requires_grad_()
    read, fed = (
        table[ids] * DEBUG.d_model**0.5 + by_hand(ids.shape[1]) for ids in (source, shifted)
    )
    states = twin(
        read,
        fed,
        tgt_mask=~causal_mask(T),
        src_key_padding_mask=~sees,
        memory_key_padding_mask=~sees,
    )
    got, want = model(source, shifted, sees), states @ table.T
    close(got, want)
    out = torch.randn(B, T, DEBUG.vocab_size, generator=generator(2), dtype=torch.float64)
    got.backward(out), want.backward(out)
    close(model.embed.weight.grad, table.grad)  # of the three places where the table is used
    for ours, theirs in zip(model.encoder, twin.encoder.layers, strict=True):
        close(ours.feed_forward.up_proj.weight.grad, theirs.linear1.weight.grad)
        close(ours.attention_norm.bias.grad, theirs.norm1.bias.grad)
    for ours, theirs in zip(model.decoder, twin.decoder.layers, strict=True):
        close(ours.cross_attention.out_proj.weight.grad, theirs.multihead_attn.out_proj.weight.grad)
        close(ours.feed_forward_norm.weight.grad, theirs.norm3.weight.grad)


def test_behind_pre_norm_stands_one_more_norm_and_behind_post_norm_none():
    kinds = {order: make(norm_order=order) for order in ("post", "pre")}
    counts = {order: sum(p.numel() for p in model.parameters()) for order, model in kinds.items()}
    assert counts["pre"] - counts["post"] == 2 * 2 * DEBUG.d_model


@pytest.mark.parametrize(
    ("config", "want"), [(BASE, 63_045_632), (BIG, 214_171_648)], ids=["base", "big"]
)
def test_parameters_to_the_unit(config, want):
    """V d + 6 (4 d^2 + F + 4 d) + 6 (8 d^2 + F + 6 d), with F = 2 d d_ff + d_ff + d."""
    v, d, d_ff = config.vocab_size, config.d_model, config.d_ff
    f = 2 * d * d_ff + d_ff + d
    assert v * d + 6 * (4 * d * d + f + 4 * d) + 6 * (8 * d * d + f + 6 * d) == want
    with torch.device("meta"):
        assert sum(p.numel() for p in Transformer(config).parameters()) == want


def test_dates_have_as_many_symbols_as_their_tokenizer():
    assert date_chars().vocab_size == DATES.vocab_size


# Who sees whom -------------------------------------------------------------------------------


def moved(got, before) -> list[bool]:
    """For each target position, whether its logits changed."""
    return (got - before).abs().amax(dim=(0, 2)).gt(1e-12).tolist()


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_the_decoder_does_not_look_ahead(batch, norm_order):
    source, shifted, sees = batch
    other = shifted.clone()
    other[:, 3] = (other[:, 3] + 1) % DEBUG.vocab_size
    model = make(norm_order=norm_order)
    before = model(source, shifted, sees)
    assert moved(model(source, other, sees), before) == [False, False, False, True, True]
    blind = make(norm_order=norm_order, causal=False)
    assert all(moved(blind(source, other, sees), blind(source, shifted, sees)))


def test_every_source_position_reaches_every_target_position(batch):
    source, shifted, _ = batch
    model = make()
    for i in range(S):
        other = source.clone()
        other[:, i] = (other[:, i] + 1) % DEBUG.vocab_size
        assert all(moved(model(other, shifted), model(source, shifted)))


def test_padding_is_seen_by_nobody(batch):
    source, shifted, sees = batch
    model, other = make(), source.clone()
    other[1, 4:] = (other[1, 4:] + 1) % DEBUG.vocab_size
    close(model(other, shifted, sees), model(source, shifted, sees))
    close(model(source[1:, :4], shifted[1:]), model(source, shifted, sees)[1:])
    assert any(moved(model(other, shifted), model(source, shifted)))


def test_without_the_scale_symbols_are_smaller_by_the_root_of_the_width(batch):
    scaled, plain = make(), make(scale_embeddings=False)
    ids = batch[0]
    table = by_hand(S)
    symbols, small = scaled._embedded(ids) - table, plain._embedded(ids) - table
    close(symbols, small * DEBUG.d_model**0.5)
    close(small, scaled.embed.weight[ids])


def test_symbols_start_with_variance_one_and_logits_too():
    config = TransformerConfig(vocab_size=1009, n_layers=1, n_heads=2, d_model=64, d_ff=16)
    model = Transformer(config, generator=generator(0))
    ids = torch.arange(1009)[None, :500]
    assert model.embed.weight.var().item() * 64 == pytest.approx(1, abs=0.03)
    assert model(ids, ids[:, :50]).var().item() == pytest.approx(1, abs=0.1)


# Randomness, generation, learning ------------------------------------------------------------


def test_the_generator_alone_decides_over_weights_and_dropout(batch):
    config = dataclasses.replace(DEBUG, dropout=0.5)
    once, again = (Transformer(config, generator=generator(5)) for _ in range(2))
    for a, b in zip(once.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    first = once(*batch)
    assert torch.equal(first, again(*batch))
    assert not torch.equal(first, once(*batch))
    assert torch.equal(once.eval()(*batch), again.eval()(*batch))


def test_dropout_works_on_embeddings_and_on_what_every_part_adds(batch):
    """2 sums of embeddings, 2 parts in each encoder block and 3 in each decoder block."""
    model = make(dropout=0.5)
    calls = []
    model.dropout.register_forward_hook(lambda *_: calls.append(1))
    model(*batch)
    assert len(calls) == 2 + DEBUG.n_layers * (2 + 3)


def test_a_continuation_is_the_last_row_of_the_forward_pass(batch):
    source, shifted, sees = batch
    model = make()
    close(model.continuation(source, sees)(shifted), model(source, shifted, sees)[:, -1])
    one = model.continuation(source[1:], sees[1:])
    close(one(shifted), model(source[[1, 1]], shifted, sees[[1, 1]])[:, -1])
    close(model.continuation(source[:1])(shifted[:1]), model(source[:1], shifted[:1])[:, -1])


def reversed_right(model) -> float:
    """The share of strings that are written right, without teacher forcing."""
    source, _, target = reversal(200, 4, generator(99), n_symbols=5)
    out = greedy(model.continuation(source), b=200, start_id=START, end_id=77, max_length=4)
    return out.eq(target).all(dim=-1).double().mean().item()


def taught(**changes) -> tuple[float, float]:
    """Learn to reverse four letters: the last loss, and the share that is written right."""
    sizes = {"vocab_size": 6, "n_layers": 1, "n_heads": 2, "d_model": 32, "d_ff": 64}
    model = Transformer(TransformerConfig(**sizes | changes), generator=generator(0))

    def draw(g):
        source, shifted, target = reversal(32, 4, g, n_symbols=5)
        assert torch.equal(shifted, shift_right(target, START))
        return (source, shifted), target

    history = train(
        model,
        torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9),
        draw,
        cross_entropy,
        n_steps=250,
        generator=generator(1),
        rate=lambda n: warmup_inverse_sqrt(n, d_model=32, warmup_steps=80),
    )
    return sum(history[-10:]) / 10, reversed_right(model.eval())


def test_it_learns_to_reverse():
    loss, right = taught()
    assert loss < 0.1
    assert right > 0.95


def test_without_the_causal_mask_it_copies_what_it_should_predict_and_cannot_write():
    """Its loss looks fine: the next symbol was in what it was fed. Alone it has nothing to copy."""
    loss, right = taught(causal=False)
    assert loss < 0.25
    assert right < 0.6


def test_the_loss_at_the_start_is_that_of_guessing_plus_half_the_variance_of_logits(batch):
    """For logits of variance 1, ln V + 1/2, give or take what a small model varies by."""
    config = TransformerConfig(vocab_size=1009, n_layers=2, n_heads=2, d_model=64, d_ff=16)
    model = Transformer(config, generator=generator(0))
    ids = torch.randint(1009, (8, 50), generator=generator(1))
    loss = cross_entropy(model(ids, ids), ids.roll(7, dims=0))
    assert loss.item() == pytest.approx(torch.tensor(1009.0).log().item() + 0.5, abs=0.2)
    assert F.cross_entropy(model(ids, ids).mT, ids.roll(7, dims=0)).item() == pytest.approx(
        loss.item(), rel=1e-5
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"n_layers": 0}, "n_layers must be at least 1, got 0"),
        ({"n_heads": 4}, "d_model must be a multiple of n_heads, got d_model=18 and n_heads=4"),
        ({"d_model": 21}, "d_model must be a multiple of two, got d_model=21"),
        ({"dropout": 1.0}, r"p must be in \[0, 1\), got 1.0"),
        ({"norm_order": "both"}, "norm_order must be 'post' or 'pre', got 'both'"),
    ],
)
def test_sizes_that_cannot_work_are_refused(change, says, no_shape_hook):
    with pytest.raises(ValueError, match=says):
        dataclasses.replace(DEBUG, **change)
