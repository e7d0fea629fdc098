import math

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.positions.sinusoidal import (
    angles,
    frequencies,
    shift_rotation,
    sinusoidal_table,
)

EXACT = {"dtype": torch.float64}


def in_plain_python(position: float, d_model: int, base: float) -> list[float]:
    row = []
    for i in range(d_model // 2):
        angle = position / base ** (2 * i / d_model)
        row += [math.sin(angle), math.cos(angle)]
    return row


def test_by_hand_four_numbers_wide():
    want = [[0, 1, 0, 1], [0.841471, 0.540302, 0.010000, 0.999950]]
    want += [[0.909297, -0.416147, 0.019999, 0.999800], [0.141120, -0.989992, 0.029996, 0.999550]]
    close(sinusoidal_table(torch.arange(4), 4), torch.tensor(want), atol=1e-6, rtol=0)


def test_by_hand_eight_numbers_wide():
    want = [0.841471, 0.540302, 0.099833, 0.995004, 0.010000, 0.999950, 0.001000, 1.000000]
    close(sinusoidal_table(torch.tensor([1]), 8)[0], torch.tensor(want), atol=1e-6, rtol=0)


@pytest.mark.parametrize("base", [10_000.0, 500_000.0, 7.0])
def test_equals_plain_python_at_positions_in_any_order(base):
    positions = torch.tensor([[11.0, -3.0, 0.5], [100_003.0, 0.0, 2.0]])
    want = [[in_plain_python(p, 26, base) for p in row] for row in positions.tolist()]
    got = sinusoidal_table(positions, 26, base=base, **EXACT)
    close(got, torch.tensor(want, **EXACT), atol=1e-9, rtol=0)  # angles near 1e5


def test_float32_is_the_rounded_truth_even_far_out():
    far = torch.arange(1_000_000, 1_000_007)
    want = torch.tensor([in_plain_python(p, 14, 1e4) for p in far.tolist()])
    close(sinusoidal_table(far, 14), want, atol=1e-7, rtol=0)


def test_every_vector_has_the_same_length_and_the_wavelengths_are_those_of_the_course():
    table = sinusoidal_table(torch.arange(1009), 512, **EXACT)
    close(table.square().sum(-1), torch.full((1009,), 256.0, **EXACT))
    wavelengths = 2 * math.pi / frequencies(512)
    assert wavelengths[0].item() == pytest.approx(6.2832, abs=1e-4)
    assert wavelengths[-1].item() == pytest.approx(60611.48, abs=0.01)


def test_products_depend_on_the_distance_alone_and_not_on_its_direction():
    table = sinusoidal_table(torch.arange(101), 512, **EXACT)
    products = [round((table[53] @ table[53 + k]).item(), 2) for k in [0, 1, 2, 4, 8, 16, 32]]
    assert products == [256.0, 249.10, 231.73, 196.69, 184.97, 161.53, 143.95]
    close(table[61] @ table[61 + 7], table[5] @ table[5 + 7])
    close(table[61] @ table[61 + 7], table[61] @ table[61 - 7])


@pytest.mark.parametrize("shift", [0, 1, 7, -13, 2.5, 4096])
@pytest.mark.parametrize("base", [10_000.0, 31.0])
def test_one_rotation_moves_every_position_along(shift, base):
    positions = torch.tensor([0.0, 3.0, 17.0, 1000.0])
    start = sinusoidal_table(positions, 22, base=base, **EXACT)
    rotation = shift_rotation(shift, 22, base=base, **EXACT)
    want = sinusoidal_table(positions + shift, 22, base=base, **EXACT)
    close(start @ rotation.T, want, atol=1e-10, rtol=0)
    close(rotation @ rotation.T, torch.eye(22, **EXACT))


def test_seven_shifts_by_one_are_one_shift_by_seven():
    once, seven = (shift_rotation(k, 22, **EXACT) for k in (1, 7))
    close(once.matrix_power(7), seven)


def test_the_rotation_by_hand_turns_clockwise():
    want = [[math.cos(2), math.sin(2)], [-math.sin(2), math.cos(2)]]
    close(shift_rotation(2, 2), torch.tensor(want))


def test_equals_roformer_of_the_transformers_library_which_holds_all_sines_first():
    from transformers.models.roformer.modeling_roformer import (
        RoFormerSinusoidalPositionalEmbedding,
    )

    theirs = RoFormerSinusoidalPositionalEmbedding(101, 22)
    theirs.weight.data = theirs.create_weight()
    ours = sinusoidal_table(torch.arange(101), 22)
    close(torch.cat([ours[:, 0::2], ours[:, 1::2]], dim=-1), theirs(torch.Size([1, 101])))


def test_dtype_and_shape_follow_the_call():
    assert sinusoidal_table(torch.tensor(5), 6).shape == (6,)
    assert sinusoidal_table(torch.zeros(2, 3, 0, dtype=torch.long), 6).shape == (2, 3, 0, 6)
    assert sinusoidal_table(torch.arange(3), 6, dtype=torch.bfloat16).dtype is torch.bfloat16
    assert shift_rotation(1, 6).dtype is torch.float32
    assert angles(torch.arange(3), frequencies(6).float()).dtype is torch.float64


@pytest.mark.parametrize(("width", "works"), [(7, 8), (1, 2), (0, 2), (-4, 2)])
def test_a_width_without_pairs_is_refused(width, works):
    with pytest.raises(ValueError, match=f"got {width}.*the nearest width that works is {works}"):
        frequencies(width)
    with pytest.raises(ValueError, match="width must be even"):
        sinusoidal_table(torch.arange(3), width)


@pytest.mark.parametrize("base", [1.0, 0.0, -10_000.0, float("nan")])
def test_a_base_that_orders_no_pairs_is_refused(base):
    with pytest.raises(ValueError, match="base must be above 1, got"):
        shift_rotation(1, 4, base=base)


def test_a_dtype_of_whole_numbers_is_refused():
    with pytest.raises(ValueError, match=r"must hold fractions, got torch.int64"):
        sinusoidal_table(torch.arange(3), 4, dtype=torch.int64)
