"""The three encoder-decoders against the equations of a GRU and of attention, step by step."""

import math

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.models.seq2seq import (
    AdditiveSeq2Seq,
    FixedVectorSeq2Seq,
    MultiplicativeSeq2Seq,
    Seq2SeqConfig,
    additive_scores,
    alignment,
    multiplicative_scores,
)
from plainformer.seeding import generator

B, S, T, VOCAB, D_MODEL, D_STATE = 2, 7, 5, 11, 3, 13
MODELS = [FixedVectorSeq2Seq, AdditiveSeq2Seq, MultiplicativeSeq2Seq]
CONFIG = Seq2SeqConfig(vocab_size=VOCAB, d_model=D_MODEL, d_state=D_STATE)


def make(kind):
    """A model in float64 whose weights depend on nothing but this line."""
    model = kind(CONFIG).double()
    g = generator(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g, dtype=torch.float64) / 2)
    return model


@pytest.fixture
def words():
    g = generator(0)
    source = torch.randint(VOCAB, (B, S), generator=g)
    return source, torch.randint(VOCAB, (B, T), generator=g)


def sees(*lengths):
    return torch.arange(S) < torch.tensor(lengths)[:, None]


def gru(x, state, w, name):
    """One step of a GRU, from the equations in torch's documentation."""
    tail = "_l0" if f"{name}.weight_ih_l0" in w else ""
    into = w[f"{name}.weight_ih{tail}"] @ x + w[f"{name}.bias_ih{tail}"]
    back = w[f"{name}.weight_hh{tail}"] @ state + w[f"{name}.bias_hh{tail}"]
    (r_in, z_in, n_in), (r_back, z_back, n_back) = into.chunk(3), back.chunk(3)
    reset, keep = torch.sigmoid(r_in + r_back), torch.sigmoid(z_in + z_back)
    return (1 - keep) * torch.tanh(n_in + reset * n_back) + keep * state


def look_back(scores, memory):
    """Softmax and average, one source position at a time."""
    powers = [score.exp() for score in scores]
    weights = [power / sum(powers) for power in powers]
    return sum(a * h for a, h in zip(weights, memory, strict=True)), torch.stack(weights)


def by_the_book(kind, w, source, shifted):
    """Logits and alignment of one sentence without padding, symbol by symbol."""
    memory, state = [], torch.zeros(D_STATE, dtype=torch.float64)
    for symbol in source:
        state = gru(w["embed.weight"][symbol], state, w, "encoder")
        memory.append(state)
    logits, rows = [], []
    for symbol in shifted:
        y = w["embed.weight"][symbol]
        if kind is FixedVectorSeq2Seq:
            found, row = memory[-1], torch.eye(len(memory), dtype=torch.float64)[-1]
            out = state = gru(torch.cat([y, found]), state, w, "decoder")
        elif kind is AdditiveSeq2Seq:
            query = w["query_proj.weight"] @ state
            hidden = [torch.tanh(query + w["memory_proj.weight"] @ h) for h in memory]
            found, row = look_back([(w["score_proj.weight"][0] * x).sum() for x in hidden], memory)
            out = state = gru(torch.cat([y, found]), state, w, "decoder")
        else:
            state = gru(y, state, w, "decoder")
            query = w["query_proj.weight"] @ state
            found, row = look_back([(query * h).sum() for h in memory], memory)
            out = torch.tanh(w["found_proj.weight"] @ torch.cat([found, state]))
        logits.append(w["readout.weight"] @ out + w["readout.bias"])
        rows.append(row)
    return torch.stack(logits), torch.stack(rows)


def test_additive_scores_by_hand():
    """tanh(ln 2 + 0) is 3/5 and tanh(0) is 0; the second column of weights has the factor 10."""
    ln2 = math.log(2)
    scores = additive_scores(
        torch.tensor([[1.0], [0.0]]),
        torch.tensor([[0.0], [1.0], [-1.0]]),
        torch.tensor([[ln2, 0.0]]),
        torch.tensor([[0.0, ln2]]),
        torch.tensor([5.0, 10.0]),
    )
    close(scores, torch.tensor([[3.0, 9.0, -3.0], [0.0, 6.0, -6.0]]))


def test_multiplicative_scores_by_hand():
    queries, memory = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 1.0], [0.0, -1.0]])
    assert multiplicative_scores(queries, memory).tolist() == [[5.0, -2.0]]
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert multiplicative_scores(queries, memory, swap).tolist() == [[7.0, -1.0]]


def test_an_alignment_sums_to_one_and_gives_padding_nothing():
    scores = torch.randn(B, T, S, generator=generator(1))
    close(alignment(scores).sum(dim=-1), torch.ones(B, T))
    seen = alignment(scores, sees(7, 3))
    close(seen.sum(dim=-1), torch.ones(B, T))
    assert seen[1, :, 3:].eq(0).all()
    close(seen[1, :, :3], alignment(scores[1, :, :3]))


def test_a_source_without_real_positions_gives_zeros_and_finite_gradients():
    scores = torch.randn(B, T, S, generator=generator(1)).requires_grad_()
    weights = alignment(scores, sees(7, 0))
    weights.square().sum().backward()
    assert weights[1].eq(0).all()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("kind", MODELS)
def test_values_and_gradients_follow_the_equations_step_by_step(kind, words):
    model = make(kind)
    weights = dict(model.named_parameters())
    book = [by_the_book(kind, weights, *pair) for pair in zip(*words, strict=True)]
    logits, rows = (torch.stack(part) for part in zip(*book, strict=True))
    close(model(*words), logits)
    close(model.walk(*words)[1], rows)
    ours = torch.autograd.grad(model(*words).square().sum(), list(weights.values()))
    theirs = torch.autograd.grad(logits.square().sum(), list(weights.values()))
    for name, one, other in zip(weights, ours, theirs, strict=True):
        close(one, other, msg=lambda text, name=name: f"{name}: {text}")


def test_the_additive_model_scores_as_the_function_does(words):
    model = make(AdditiveSeq2Seq)
    memory, last = model.encode(words[0])
    start = memory[torch.arange(B), last][:, None]
    projections = [p.weight.mT for p in (model.query_proj, model.memory_proj)]
    scores = additive_scores(start, memory, *projections, model.score_proj.weight[0])
    close(model.walk(*words)[1][:, :1], alignment(scores))


@pytest.mark.parametrize("kind", MODELS)
def test_padding_changes_nothing(kind, words):
    """A sentence in a longer block gives the same as alone, whatever stands behind it."""
    source, shifted = words
    model = make(kind)
    alone = model(source[1:, :3], shifted[1:])
    for filler in (0, 5):
        source[1, 3:] = filler
        close(model(source, shifted, sees(7, 3))[1:], alone)
        assert model.walk(source, shifted, sees(7, 3))[1][1, :, 3:].eq(0).all()


@pytest.mark.parametrize("kind", MODELS)
def test_a_step_knows_nothing_of_what_is_fed_later(kind, words):
    source, shifted = words
    model = make(kind)
    before = model(source, shifted)
    shifted[:, 3:] = (shifted[:, 3:] + 1) % VOCAB
    after = model(source, shifted)
    close(after[:, :3], before[:, :3])
    assert after[:, 3:].ne(before[:, 3:]).any()


@pytest.mark.parametrize("kind", MODELS)
def test_one_symbol_on_each_side_is_enough(kind, words):
    source, shifted = words
    out = make(kind)(source[:, :1], shifted[:, :1])
    assert out.shape == (B, 1, VOCAB)
    assert make(kind).walk(source[:, :1], shifted[:, :1])[1].eq(1).all()
