import pytest
import torch
from jaxtyping import TypeCheckError

from plainformer.masks import causal_mask, padding_mask, window_mask


def test_causal_by_hand():
    assert causal_mask(3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_fewer_queries_than_keys_are_the_last_positions():
    assert causal_mask(2, 5).tolist() == [[True, True, True, True, False], [True] * 5]
    assert torch.equal(causal_mask(5, 7), causal_mask(7)[2:])


def test_one_new_query_sees_everything():
    assert causal_mask(1, 7).all()


def test_more_queries_than_keys_leave_the_first_blind():
    assert causal_mask(3, 2).tolist() == [[False, False], [True, False], [True, True]]


def test_no_position_sees_ahead_and_every_position_sees_itself_and_all_before():
    mask = causal_mask(11)
    for t in range(11):
        for s in range(11):
            assert mask[t, s].item() == (s <= t)


def test_window_by_hand():
    assert window_mask(4, left=1).int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    assert window_mask(2, 5, left=2, right=1).int().tolist() == [[0, 1, 1, 1, 1], [0, 0, 1, 1, 1]]


@pytest.mark.parametrize(("t", "s"), [(7, 7), (5, 7), (1, 7), (7, 5), (0, 3), (3, 0)])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (2, 0), (0, 3), (3, 2), (11, 13)])
def test_a_query_sees_its_neighbours_on_each_side_and_no_others(t, s, left, right):
    mask = window_mask(t, s, left=left, right=right)
    assert mask.shape == (t, s)
    for i in range(t):
        at = i + s - t
        assert mask[i].tolist() == [at - left <= key <= at + right for key in range(s)]


def test_a_causal_window_of_w_lets_each_query_see_w_positions_itself_included():
    """Mistral's 4096 is such a number: left is one less."""
    mask = window_mask(11, left=3 - 1)
    assert mask.sum(dim=1).tolist() == [1, 2, *[3] * 9]
    assert mask.diagonal().all()


def test_a_window_of_everything_is_no_window():
    assert torch.equal(window_mask(5, 7, left=6), causal_mask(5, 7))
    assert window_mask(5, 7, left=10**12, right=10**12).all()


def test_windows_combine_with_other_masks():
    assert torch.equal(window_mask(7, left=2, right=3) & causal_mask(7), window_mask(7, left=2))


@pytest.mark.parametrize("wrong", [{"left": -1}, {"left": 2, "right": -3}])
def test_a_window_below_zero_is_refused(wrong):
    name, count = list(wrong.items())[-1]
    says = rf"{name} must be at least 0, got {count}; it counts the positions on that side, without"
    with pytest.raises(ValueError, match=says):
        window_mask(7, **wrong)


def test_padding_by_hand():
    assert padding_mask(torch.tensor([2, 0, 3]), 3).tolist() == [
        [[True, True, False]],
        [[False, False, False]],
        [[True, True, True]],
    ]


def test_masks_combine_with_and():
    both = causal_mask(5) & padding_mask(torch.tensor([2, 3, 5]), 5)
    assert both.shape == (3, 5, 5)
    assert both.sum(dim=(1, 2)).tolist() == [1 + 2 * 4, 1 + 2 + 3 * 3, 15]


@pytest.mark.parametrize("lengths", [[2, 8, 3], [2, -1, 3]])
def test_a_length_outside_the_sequence_is_refused(lengths):
    with pytest.raises(ValueError, match=r"between 0 and s=7, got \[(8|-1)\]"):
        padding_mask(torch.tensor(lengths), 7)


def test_an_empty_batch_has_an_empty_mask():
    assert padding_mask(torch.tensor([], dtype=torch.long), 7).shape == (0, 1, 7)


def test_the_shape_hook_refuses_lengths_that_are_not_whole():
    with pytest.raises(TypeCheckError):
        padding_mask(torch.tensor([2.0, 3.0]), 7)


def test_without_the_hook_the_function_is_what_readers_call(no_shape_hook):
    assert padding_mask(torch.tensor([2.0, 3.0]), 7).sum().item() == 5
