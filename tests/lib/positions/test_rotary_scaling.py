import math

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.positions.rotary import rotate_half_split
from plainformer.positions.rotary_scaling import (
    interpolated,
    llama3_frequencies,
    ntk_base,
    yarn_attention_factor,
    yarn_frequencies,
)
from plainformer.positions.sinusoidal import frequencies
from plainformer.seeding import generator

D, BASE = 46, 10_000.0  # 23 pairs


def theirs(length: int = 211, base: float = BASE, d_head: int = D, **parameters):
    """Frequencies and attention factor of the transformers library."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=3 * d_head,
        num_attention_heads=3,
        max_position_embeddings=length,
        rope_parameters={"rope_theta": base, **parameters},
    )
    seq_len = config.rope_parameters.pop("seq_len", None)
    return ROPE_INIT_FUNCTIONS[config.rope_parameters["rope_type"]](config, seq_len=seq_len)


def test_position_interpolation_is_a_division_of_the_positions():
    x = torch.randn(7, D, generator=generator(0), dtype=torch.float64)
    slow = rotate_half_split(x, torch.arange(7), interpolated(frequencies(D), 4.0))
    close(slow, rotate_half_split(x, torch.arange(7) / 4, frequencies(D)))


def test_ntk_slows_the_last_pair_by_the_factor_and_leaves_the_first_alone():
    before, after = frequencies(D), frequencies(D, ntk_base(D, factor=8.0))
    assert after[0] == 1
    assert (before[-1] / after[-1]).item() == pytest.approx(8)
    slowed = before / after
    assert (slowed.diff() > 0).all()


def test_yarn_keeps_the_fast_pairs_and_interpolates_the_slow_ones():
    before = frequencies(D)
    after = yarn_frequencies(D, factor=16.0, original_length=2048)
    turns = 2048 * before / (2 * math.pi)
    kept, slowed = before / after == 1, (before / after - 16).abs() < 1e-9
    assert kept[turns > 60].all()
    assert slowed[turns < 0.5].all()
    between = before / after
    assert (between.diff() >= -1e-9).all()
    assert (~kept & ~slowed).sum() > 3


def test_yarn_changes_nothing_when_even_the_last_pair_turns_often():
    assert torch.equal(yarn_frequencies(6, 10, factor=4, original_length=10**6), frequencies(6, 10))


def test_by_hand_yarn_multiplies_by_one_tenth_of_the_logarithm_more():
    assert yarn_attention_factor(1) == 1
    assert yarn_attention_factor(math.e**2) == pytest.approx(1.2)
    assert yarn_attention_factor(16) == pytest.approx(1.277259, abs=1e-6)


def test_llama3_by_hand():
    """With one pair at the middle of the ramp: half kept, half slowed."""
    freqs = frequencies(4, 10.0)
    length = 2.5 * 2 * math.pi / freqs[1].item()  # the second pair makes 2.5 turns of 1 to 4
    got = llama3_frequencies(4, 10.0, factor=8.0, original_length=round(length))
    assert got[0] == 1
    assert (got[1] / freqs[1]).item() == pytest.approx(0.5 + 0.5 / 8, abs=0.01)


@pytest.mark.parametrize("factor", [1.0, 2.0, 7.0])
def test_interpolation_equals_linear_of_the_transformers_library(factor):
    want, attention = theirs(rope_type="linear", factor=factor)
    close(interpolated(frequencies(D), factor).float(), want)
    assert attention == 1


@pytest.mark.parametrize("length", [211, 331, 1009])
def test_ntk_equals_dynamic_of_the_transformers_library(length):
    want, _ = theirs(rope_type="dynamic", factor=3.0, seq_len=length)
    now = 3.0 * length / 211 - 2.0
    close(frequencies(D, ntk_base(D, factor=now)).float(), want)


@pytest.mark.parametrize("factor", [1.0, 4.0, 40.0])
@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize(("d_head", "length"), [(46, 4099), (46, 127), (46, 100_003), (128, 4096)])
def test_yarn_equals_the_transformers_library(factor, base, d_head, length):
    want, attention = theirs(
        base=base,
        d_head=d_head,
        rope_type="yarn",
        factor=factor,
        original_max_position_embeddings=length,
    )
    got = yarn_frequencies(d_head, base, factor=factor, original_length=length)
    close(got.float(), want, rtol=1e-5, atol=0)
    assert yarn_attention_factor(factor) == pytest.approx(attention)


def test_yarn_with_other_betas_equals_the_transformers_library():
    want, _ = theirs(
        rope_type="yarn",
        factor=5.0,
        original_max_position_embeddings=1021,
        beta_fast=17.0,
        beta_slow=3.0,
    )
    got = yarn_frequencies(D, factor=5.0, original_length=1021, beta_fast=17.0, beta_slow=3.0)
    close(got.float(), want, rtol=1e-5, atol=0)


@pytest.mark.parametrize("length", [8192, 211])
def test_llama3_equals_the_transformers_library(length):
    want, attention = theirs(
        base=500_000.0,
        rope_type="llama3",
        factor=8.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=length,
    )
    close(llama3_frequencies(D, original_length=length).float(), want, rtol=1e-5, atol=0)
    assert attention == 1


@pytest.mark.parametrize("factor", [0.5, 0.0, -2.0, float("nan")])
def test_a_factor_below_one_is_refused(factor):
    for call in [
        lambda: interpolated(frequencies(D), factor),
        lambda: ntk_base(D, factor=factor),
        lambda: yarn_frequencies(D, factor=factor, original_length=211),
        lambda: yarn_attention_factor(factor),
        lambda: llama3_frequencies(D, factor=factor),
    ]:
        with pytest.raises(ValueError, match="factor must be at least 1, got"):
            call()


def test_a_single_pair_has_no_base_for_ntk():
    for d_head in (2, 7):
        with pytest.raises(ValueError, match=f"at least 4, got {d_head}"):
            ntk_base(d_head, factor=2.0)


@pytest.mark.parametrize(("fast", "slow"), [(1.0, 32.0), (3.0, 3.0), (32.0, 0.0)])
def test_turns_out_of_order_are_refused(fast, slow):
    says = f"got beta_slow={slow}"
    with pytest.raises(ValueError, match=says):
        yarn_frequencies(D, factor=2.0, original_length=211, beta_fast=fast, beta_slow=slow)
    with pytest.raises(ValueError, match=says):
        llama3_frequencies(D, beta_fast=fast, beta_slow=slow)


def test_a_training_too_short_for_yarn_is_refused():
    with pytest.raises(ValueError, match=r"of 2 pi positions, got 5; use interpolated"):
        yarn_frequencies(D, factor=2.0, original_length=5)
