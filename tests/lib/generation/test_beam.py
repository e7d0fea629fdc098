"""Beam search against exhaustive search, and against its convention written down naively."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plainformer.generation.beam import beam_search
from plainformer.generation.greedy import greedy
from plainformer.models.transformer import DEBUG, Transformer
from plainformer.seeding import generator

START, END = 0, 1


class Table:
    """Log-probabilities that depend on the step and the last symbol; it counts how often it ran."""

    def __init__(self, seed: int, vocab: int, max_length: int, sharp: float = 2.0):
        g = generator(seed)
        logits = sharp * torch.randn(max_length, vocab, vocab, generator=g, dtype=torch.float64)
        self.log_p, self.vocab, self.max_length = logits.log_softmax(dim=-1), vocab, max_length
        self.calls = 0

    def __call__(self, written):
        self.calls += 1
        # Any shift of a row's logits says the same; log-softmax has to be taken by the search.
        return self.log_p[written.shape[1] - 1, written[:, -1]] + 5.0

    def total(self, ids) -> float:
        before = [START, *ids[:-1]]
        return sum(
            self.log_p[i, a, b].item() for i, (a, b) in enumerate(zip(before, ids, strict=True))
        )

    def search(self, **how):
        how = {"start_id": START, "end_id": END, "max_length": self.max_length} | how
        return beam_search(self, **how)


def exhaustive(table: Table, alpha: float) -> tuple[list[int], float]:
    """The best of all texts that end within the length, each looked at."""
    symbols = [i for i in range(table.vocab) if i != END]
    best = ([], -math.inf)
    for n in range(table.max_length):
        for body in itertools.product(symbols, repeat=n):
            ids = [*body, END]
            score = table.total(ids) / len(ids) ** alpha
            best = max(best, (ids, score), key=lambda pair: pair[1])
    return best


def naive(table: Table, beam_width: int, alpha: float) -> tuple[list[int], float] | None:
    """The convention in plain lists, always to the last step, without stopping earlier."""
    living, best = [[]], None
    for length in range(1, table.max_length + 1):
        ranked = [[*ids, symbol] for ids in living for symbol in range(table.vocab)]
        ranked.sort(key=table.total, reverse=True)
        for ids in ranked[:beam_width]:
            score = table.total(ids) / length**alpha
            if ids[-1] == END and (best is None or score > best[1]):
                best = (ids, score)
        living = [ids for ids in ranked if ids[-1] != END][:beam_width]
    return best


sizes = {
    "seed": st.integers(0, 10**6),
    "vocab": st.integers(2, 4),
    "max_length": st.integers(1, 4),
    "alpha": st.sampled_from([0.0, 0.6, 1.0, 2.0]),
}


@settings(max_examples=80, deadline=None)
@given(**sizes)
def test_with_a_beam_for_everything_it_finds_what_exhaustive_search_finds(
    seed, vocab, max_length, alpha
):
    table = Table(seed, vocab, max_length)
    found = table.search(beam_width=vocab**max_length, alpha=alpha)[0]
    ids, score = exhaustive(table, alpha)
    assert found.ids == ids
    assert found.score == pytest.approx(score, abs=1e-12)
    assert found.log_probability == pytest.approx(table.total(ids), abs=1e-12)
    assert found.finished


@settings(max_examples=150, deadline=None)
@given(beam_width=st.integers(1, 4), sharp=st.sampled_from([0.3, 2.0, 5.0]), **sizes)
def test_a_narrow_beam_finds_what_the_convention_says(
    seed, vocab, max_length, alpha, beam_width, sharp
):
    table = Table(seed, vocab, max_length, sharp)
    found, want = table.search(beam_width=beam_width, alpha=alpha), naive(table, beam_width, alpha)
    if want is None:
        assert [hypothesis.finished for hypothesis in found] == [False]
    else:
        assert found[0].ids == want[0]
        assert found[0].score == pytest.approx(want[1], abs=1e-12)
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    for hypothesis in found:
        assert hypothesis.log_probability == pytest.approx(table.total(hypothesis.ids), abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_with_a_beam_of_one_and_no_length_it_is_greedy_search(seed):
    table = Table(seed, vocab=4, max_length=5)
    ids = greedy(table, b=1, start_id=START, end_id=END, max_length=5)[0].tolist()
    found = table.search(beam_width=1)[0]
    assert (found.ids, found.finished) == (ids, ids[-1] == END)


def tree(**follows):
    """A model from a written-out tree: what follows which text, as probabilities."""

    def next_logits(written):
        rows = []
        for ids in written.tolist():
            after = follows["_" + "".join("se ab"[i] for i in ids[1:] if i > 2)]
            rows.append([after.get(symbol, 0.0) for symbol in "se.ab"])
        return torch.tensor(rows, dtype=torch.float64).log()

    return next_logits


def test_by_hand_the_likely_text_begins_with_the_unlikely_symbol():
    """a has 0.6, but then nothing is likely: 0.6 * 0.4; b has 0.4, then surely the end."""
    model = tree(
        _={"a": 0.6, "b": 0.4},
        _a={"e": 0.4, "a": 0.3, "b": 0.3},
        _b={"e": 1.0},
        _aa={"e": 1.0},
        _ab={"e": 1.0},
    )
    how = {"start_id": 0, "end_id": 1, "max_length": 3}
    assert greedy(model, b=1, **how)[0].tolist() == [3, 1]
    best = beam_search(model, beam_width=2, **how)[0]
    assert (best.ids, best.finished) == ([4, 1], True)
    assert best.log_probability == pytest.approx(math.log(0.4))


def test_by_hand_alpha_decides_between_short_and_long():
    """The end at once has 0.3; three symbols have 0.7 * 0.4: sums -1.20 and -1.27.
    Divided by 1 and by 3, the long one has the higher score."""
    model = tree(_={"e": 0.3, "a": 0.7}, _a={"a": 0.4, "b": 0.6}, _aa={"e": 1.0}, _ab={"b": 1.0})
    how = {"start_id": 0, "end_id": 1, "max_length": 3, "beam_width": 2}
    short, long = beam_search(model, alpha=0.0, **how)[0], beam_search(model, alpha=1.0, **how)[0]
    assert (short.ids, long.ids) == ([1], [3, 3, 1])
    assert short.score == pytest.approx(math.log(0.3))
    assert long.score == pytest.approx(math.log(0.28) / 3)


def test_it_stops_as_soon_as_no_living_text_can_win():
    """After one step the end has 0.6 and the best other 0.4, which can only get less likely."""
    table = Table(0, vocab=3, max_length=4)
    table.log_p[0, START] = torch.tensor([0.1, 0.6, 0.3], dtype=torch.float64).log()
    table.search(beam_width=2)
    assert table.calls == 1
    # With alpha 2, a sum of ln 0.3 over 16 may yet beat one of ln 0.6 over 1: it has to look.
    table.calls = 0
    table.search(beam_width=2, alpha=2.0)
    assert table.calls > 1


def test_when_nothing_ends_the_likeliest_living_text_is_given_and_says_so():
    table = Table(3, vocab=3, max_length=3)
    table.log_p[:, :, END] = -torch.inf
    table.log_p = table.log_p.log_softmax(dim=-1)
    (found,) = table.search(beam_width=9, alpha=1.0)
    bodies = itertools.product([0, 2], repeat=3)
    best = max((list(body) for body in bodies), key=table.total)
    assert (found.ids, found.finished) == (best, False)
    assert found.score == pytest.approx(table.total(best) / 3)


def test_when_nothing_but_the_end_is_possible_that_is_the_text():
    model = lambda written: torch.tensor([[0.0, 1.0, 0.0]]).log()  # noqa: E731
    how = {"start_id": START, "end_id": END, "max_length": 3, "beam_width": 2}
    (found,) = beam_search(model, **how)
    assert found == ([END], 0.0, 0.0, True)


def test_ties_go_to_the_text_that_ranked_higher_then_to_the_smaller_id():
    model = lambda written: torch.zeros(len(written), 4)  # noqa: E731
    how = {"start_id": START, "end_id": END, "max_length": 2}
    assert beam_search(model, beam_width=1, **how)[0].ids == [0, 0]  # 0 before the end, twice
    assert [h.ids for h in beam_search(model, beam_width=2, **how)] == [[END]]
    assert [h.ids for h in beam_search(model, beam_width=2, alpha=3.0, **how)] == [[0, END], [END]]


def test_with_a_model_the_probabilities_are_those_of_its_forward_pass():
    model = Transformer(DEBUG, generator=generator(0)).double().eval()
    source = torch.randint(DEBUG.vocab_size, (1, 7), generator=generator(1))
    sees = torch.arange(7)[None] < 5
    how = {"start_id": 1, "end_id": 2, "max_length": 5, "beam_width": 3, "alpha": 0.6}
    found = beam_search(model.continuation(source, sees), **how)
    for hypothesis in found:
        ids = torch.tensor([hypothesis.ids])
        fed = torch.tensor([[1, *hypothesis.ids[:-1]]])
        log_p = model(source, fed, sees).log_softmax(dim=-1).gather(-1, ids[..., None])
        assert hypothesis.log_probability == pytest.approx(log_p.sum().item())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"beam_width": 0}, "beam_width must be at least 1, got 0"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"alpha": -0.1}, "alpha must be at least 0, got -0.1"),
        ({"alpha": float("nan")}, "alpha must be at least 0, got nan"),
    ],
)
def test_what_cannot_be_searched_is_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        Table(0, 3, 3).search(**{"beam_width": 2} | wrong)
