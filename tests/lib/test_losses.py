"""Cross-entropy against PyTorch's, in values and gradients."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close as close

from plainformer.losses import cross_entropy
from plainformer.seeding import generator

B, T, VOCAB = 2, 5, 7


@pytest.fixture
def drawn():
    g = generator(0)
    logits = 3 * torch.randn(B, T, VOCAB, generator=g, dtype=torch.float64)
    return logits, torch.randint(VOCAB, (B, T), generator=g)


def test_by_hand():
    """Equal logits give every one of four a quarter: ln 4. Logits 0 and ln 3: 1/4 and 3/4."""
    close(cross_entropy(torch.zeros(1, 4), torch.tensor([2])).item(), math.log(4))
    two = torch.tensor([[0.0, math.log(3)]])
    close(cross_entropy(two, torch.tensor([1])).item(), math.log(4 / 3))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("ignore", [None, 3])
def test_agrees_with_torch_in_values_and_gradients(drawn, smoothing, ignore):
    logits, targets = drawn
    assert ignore is None or targets.eq(ignore).any()
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    got = cross_entropy(ours, targets, ignore=ignore, smoothing=smoothing)
    how = {"label_smoothing": smoothing} | ({} if ignore is None else {"ignore_index": ignore})
    want = F.cross_entropy(theirs.flatten(0, 1), targets.flatten(), **how)
    close(got, want)
    got.backward(), want.backward()
    close(ours.grad, theirs.grad)


def test_padding_counts_neither_above_nor_below(drawn):
    logits, targets = drawn
    more = torch.cat([logits, 50 * torch.ones(B, 3, VOCAB)], dim=1)
    padded = torch.cat([targets, torch.full((B, 3), VOCAB + 1)], dim=1)  # an id of no symbol
    close(cross_entropy(more, padded, ignore=VOCAB + 1), cross_entropy(logits, targets))


def test_large_logits_stay_finite():
    logits = torch.tensor([[1e4, -1e4, 0.0]])
    assert cross_entropy(logits, torch.tensor([0])) == 0
    assert cross_entropy(logits, torch.tensor([1])) == 2e4


def test_what_cannot_be_averaged_is_refused(drawn):
    logits, targets = drawn
    with pytest.raises(ValueError, match="at least one target must count, got none"):
        cross_entropy(logits, torch.full_like(targets, 3), ignore=3)
    with pytest.raises(ValueError, match=r"targets must be in 0..6, got \[-100, 7\]"):
        cross_entropy(logits[0, :2], torch.tensor([-100, 7]))
    with pytest.raises(ValueError, match=r"smoothing must be in \[0, 1\), got 1"):
        cross_entropy(logits, targets, smoothing=1.0)
