from math import log

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.inspection.entropy import effective_keys, entropy
from plainformer.seeding import generator


def test_two_keys_by_hand():
    """1/4 ln 4 + 3/4 ln 4/3 = 0.562335, and e to that is 1.754765."""
    row = torch.tensor([0.25, 0.75])
    close(entropy(row), torch.tensor(0.562335))
    close(effective_keys(row), torch.tensor(1.754765))


@pytest.mark.parametrize("s", [1, 2, 7, 1009])
def test_looking_at_all_keys_alike_is_the_logarithm_of_their_number(s):
    row = torch.full((s,), 1 / s, dtype=torch.float64)
    close(entropy(row).item(), log(s))
    close(effective_keys(row).item(), float(s))


def test_looking_at_one_key_is_zero():
    assert entropy(torch.eye(7)).eq(0).all()
    assert effective_keys(torch.eye(7)).eq(1).all()


def test_one_number_a_row_between_zero_and_the_logarithm():
    weights = torch.randn(2, 3, 5, 7, generator=generator(0)).softmax(dim=-1)
    assert entropy(weights).shape == (2, 3, 5)
    assert entropy(weights).gt(0).all()
    assert entropy(weights).lt(log(7)).all()


def test_the_order_of_the_keys_does_not_matter():
    weights = torch.randn(5, 7, generator=generator(1)).softmax(dim=-1)
    close(entropy(weights.flip(-1)), entropy(weights))


def test_agrees_with_torch_distributions():
    weights = torch.randn(5, 7, generator=generator(2), dtype=torch.float64).softmax(dim=-1)
    close(entropy(weights), torch.distributions.Categorical(probs=weights).entropy())


def test_a_query_that_sees_nothing_has_no_entropy_and_no_keys():
    assert entropy(torch.zeros(7)).item() == 0
    assert effective_keys(torch.zeros(7)).item() == 0
