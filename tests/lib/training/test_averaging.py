import copy

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torch.testing import assert_close as close

from plainformer.seeding import generator
from plainformer.training.averaging import averaged


def test_by_hand():
    """(1 + 2 + 6) / 3 is 3; the counter is that of the last."""
    states = [{"w": torch.tensor([w]), "n": torch.tensor(n)} for n, w in enumerate([1.0, 2.0, 6.0])]
    got = averaged(states)
    assert (got["w"].tolist(), got["n"].item()) == ([3.0], 2)


def test_agrees_with_torch_over_a_training():
    model = nn.Linear(3, 2).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reference, states, g = AveragedModel(model), [], generator(0)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(7, 3, generator=g, dtype=torch.float64)).square().mean().backward()
        optimizer.step()
        reference.update_parameters(model)
        states.append(copy.deepcopy(model.state_dict()))
    got = averaged(states)
    for name, want in reference.module.state_dict().items():
        close(got[name], want)
    model.load_state_dict(got)


def test_the_states_stay_what_they_were_and_the_mean_is_a_copy():
    state = {"w": torch.ones(2), "n": torch.tensor(3)}
    got = averaged([state])
    got["w"].add_(1), got["n"].add_(1)
    assert (state["w"].tolist(), state["n"].item()) == ([1.0, 1.0], 3)


@pytest.mark.parametrize("states", [[], [{"w": torch.ones(1)}, {"v": torch.ones(1)}]])
def test_nothing_and_strangers_have_no_mean(states):
    with pytest.raises(ValueError, match="states must be at least one, and all of one model"):
        averaged(states)
