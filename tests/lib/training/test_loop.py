import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close as close

from plainformer.seeding import generator
from plainformer.training.loop import train


class Slope(nn.Module):
    """One number to learn: y = slope * x."""

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.slope * x


def three_times(g):
    x = torch.randn(5, generator=g)
    return (x,), 3 * x


def always_two(g):
    return (torch.tensor([2.0]),), torch.tensor([6.0])


def run(draw=always_two, n_steps=2, rate=0.05, **more):
    model = Slope()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    more = {"loss": F.mse_loss, "generator": generator(0)} | more
    return model, train(model, optimizer, draw, n_steps=n_steps, **more)


def test_two_steps_by_hand():
    """x = 2, y = 6: the loss is (2w - 6)^2, its slope 4 (2w - 6): w goes 1, 1.8, 2.28."""
    model, history = run()
    close(torch.tensor(history), torch.tensor([16.0, 5.76]))
    close(model.slope.detach(), torch.tensor(2.28))


def test_gradients_do_not_pile_up_from_step_to_step():
    """With a learning rate of 0 nothing moves, and the gradient of the last step alone is left."""
    model, _ = run(n_steps=3, rate=0.0)
    close(model.slope.grad, torch.tensor(-16.0))


def test_gradients_longer_than_max_norm_are_shortened_to_it():
    model, _ = run(n_steps=1, max_norm=2.0)
    close(model.slope.detach(), torch.tensor(1.1), atol=1e-5, rtol=0)  # 1 + 0.05 * 2
    model, _ = run(n_steps=1, max_norm=100.0)
    close(model.slope.detach(), torch.tensor(1.8))


def test_it_learns_and_the_history_says_so():
    model, history = run(three_times, n_steps=200)
    close(model.slope.detach(), torch.tensor(3.0))
    assert len(history) == 200
    assert history[-1] < 1e-6 < history[0]


def test_the_same_generator_gives_the_same_history_whatever_else_draws_numbers():
    _, once = run(three_times, n_steps=5)
    torch.rand(3)
    _, again = run(three_times, n_steps=5)
    assert once == again
    assert run(three_times, n_steps=5, generator=generator(1))[1] != once


def test_the_model_keeps_its_mode_and_nothing_is_printed(capsys):
    model = Slope().eval()
    train(
        model,
        torch.optim.SGD(model.parameters(), lr=0.05),
        always_two,
        F.mse_loss,
        n_steps=1,
        generator=generator(0),
    )
    assert not model.training
    assert capsys.readouterr().out == ""


def test_several_arguments_reach_the_model():
    pair = nn.Bilinear(2, 3, 1)
    arguments = torch.ones(5, 2), torch.ones(5, 3)
    optimizer = torch.optim.SGD(pair.parameters(), lr=0.01)
    losses = train(
        pair,
        optimizer,
        lambda g: (arguments, torch.zeros(5, 1)),
        F.mse_loss,
        n_steps=2,
        generator=generator(0),
    )
    assert losses[1] < losses[0]


def test_no_steps_change_nothing():
    model, history = run(n_steps=0)
    assert (model.slope.item(), history) == (1.0, [])


def test_a_loss_that_is_not_finite_stops_the_loop_and_says_in_which_step():
    with pytest.raises(ValueError, match="got inf in step 1"):
        run(lambda g: ((torch.tensor([1e30]),), torch.tensor([0.0])))
