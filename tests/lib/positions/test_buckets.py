import pytest
import torch

from plainformer.masks import causal_mask
from plainformer.positions.buckets import (
    bidirectional_buckets,
    causal_buckets,
    relative_positions,
)

FAR = torch.arange(-1000, 1001)


def test_distances_by_hand():
    assert relative_positions(3).tolist() == [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]
    assert relative_positions(1, 4).tolist() == [[-3, -2, -1, 0]]


@pytest.mark.parametrize(("t", "s"), [(5, 5), (3, 7), (7, 3), (0, 5)])
def test_distances_are_aligned_as_the_causal_mask_is(t, s):
    assert torch.equal(relative_positions(t, s) <= 0, causal_mask(t, s))


def test_near_keys_have_a_bucket_each():
    assert causal_buckets(-torch.arange(16)).tolist() == list(range(16))
    assert bidirectional_buckets(-torch.arange(8)).tolist() == list(range(8))
    assert bidirectional_buckets(torch.arange(1, 8)).tolist() == list(range(17, 24))


def test_all_that_is_far_shares_a_bucket():
    assert causal_buckets(torch.tensor([-128, -129, -(10**6)])).tolist() == [31] * 3
    assert bidirectional_buckets(torch.tensor([128, 10**6])).tolist() == [31] * 2
    assert bidirectional_buckets(torch.tensor([-128, -(10**6)])).tolist() == [15] * 2


def test_every_bucket_is_used_and_further_is_never_a_lower_one():
    behind = causal_buckets(-torch.arange(1000))
    assert behind.unique().tolist() == list(range(32))
    assert (behind.diff() >= 0).all()
    assert bidirectional_buckets(FAR).unique().tolist() == [*range(16), *range(17, 32)]


def test_keys_ahead_share_the_bucket_of_the_query_itself_in_a_causal_model():
    assert causal_buckets(torch.arange(0, 300)).eq(0).all()


@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (32, 131), (26, 61), (8, 20)])
def test_equals_t5_of_the_transformers_library(n_buckets, max_distance):
    from transformers.models.t5.modeling_t5 import T5Attention

    for ours, bidirectional in [(bidirectional_buckets, True), (causal_buckets, False)]:
        want = T5Attention._relative_position_bucket(FAR, bidirectional, n_buckets, max_distance)
        assert torch.equal(ours(FAR, n_buckets, max_distance), want)


def test_shapes_are_kept():
    assert causal_buckets(relative_positions(3, 5)).shape == (3, 5)
    assert bidirectional_buckets(torch.tensor(-3)).item() == 3


@pytest.mark.parametrize("n_buckets", [1, 0, -2])
def test_too_few_buckets_are_refused(n_buckets):
    with pytest.raises(ValueError, match=f"at least 2, got {n_buckets}"):
        causal_buckets(FAR, n_buckets)


@pytest.mark.parametrize("n_buckets", [7, 2, 0])
def test_buckets_that_two_directions_cannot_share_are_refused(n_buckets):
    with pytest.raises(ValueError, match=f"even and at least 4.*got {n_buckets}"):
        bidirectional_buckets(FAR, n_buckets)


def test_a_distance_within_the_exact_buckets_is_refused():
    with pytest.raises(ValueError, match=r"above the 16 .*got 16 with n_buckets=32; use .* 17"):
        causal_buckets(FAR, 32, 16)
    with pytest.raises(ValueError, match="above the 8"):
        bidirectional_buckets(FAR, 32, 8)


def test_negative_lengths_are_refused():
    with pytest.raises(ValueError, match="at least 0, got t=-1 and s=3"):
        relative_positions(-1, 3)
