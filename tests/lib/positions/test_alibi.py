import pytest
import torch
from torch.testing import assert_close as close

from plainformer.masks import causal_mask
from plainformer.positions.alibi import alibi_bias, alibi_slopes
from plainformer.positions.buckets import relative_positions
from plainformer.seeding import generator


def test_slopes_by_hand():
    close(alibi_slopes(8), torch.tensor([1 / 2**i for i in range(1, 9)]))
    close(alibi_slopes(1), torch.tensor([1 / 256]))
    # Two heads, and one more from between: the first of the four of 4 heads.
    close(alibi_slopes(3), torch.tensor([1 / 16, 1 / 256, 1 / 4]))


def test_bias_by_hand_is_bottom_right_aligned():
    bias = alibi_bias(relative_positions(2, 3), torch.tensor([0.5, 0.25]))
    assert bias.tolist() == [
        [[-0.5, 0.0, -0.5], [-1.0, -0.5, 0.0]],
        [[-0.25, 0.0, -0.25], [-0.5, -0.25, 0.0]],
    ]


@pytest.mark.parametrize("n_heads", [1, 2, 3, 5, 7, 8, 11, 12, 16, 23, 71, 112])
def test_slopes_equal_bloom_and_mpt(n_heads):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    ones = torch.ones(1, 3, dtype=torch.long)
    bloom = build_alibi_tensor(ones, n_heads, torch.float32)[:, 0, 1]  # slope times position 1
    mpt = -build_mpt_alibi_tensor(n_heads, 3)[:, 0, 1]  # minus slope times distance 1
    slopes = alibi_slopes(n_heads)
    close(slopes, bloom)
    close(slopes, mpt)
    assert len(slopes.unique()) == n_heads


@pytest.mark.parametrize(("t", "s"), [(7, 7), (3, 7), (1, 7)])
def test_under_a_causal_mask_it_weighs_as_bloom_does(t, s):
    """BLOOM adds slope times the key's own position: another number, the same for a whole row."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    scores = torch.randn(5, t, s, generator=generator(0))
    hidden = ~causal_mask(t, s)
    bloom = build_alibi_tensor(torch.ones(1, s, dtype=torch.long), 5, torch.float32)
    want = (scores + bloom).masked_fill(hidden, -torch.inf).softmax(-1)
    ours = alibi_bias(relative_positions(t, s), alibi_slopes(5))
    close((scores + ours).masked_fill(hidden, -torch.inf).softmax(-1), want)


def test_rows_may_have_distances_of_their_own():
    relative = torch.stack([relative_positions(2, 5), relative_positions(2, 5) - 3])
    bias = alibi_bias(relative, alibi_slopes(3))
    assert bias.shape == (2, 3, 2, 5)
    close(bias[1], alibi_bias(relative[1], alibi_slopes(3)))


@pytest.mark.parametrize("n_heads", [0, -3])
def test_no_heads_are_refused(n_heads):
    with pytest.raises(ValueError, match=f"at least 1, got {n_heads}"):
        alibi_slopes(n_heads)
