import pytest
import torch
from torch.testing import assert_close as close

from plainformer.positions.buckets import (
    bidirectional_buckets,
    causal_buckets,
    relative_positions,
)
from plainformer.positions.relative_bias import RelativeBias, RelativeKeys
from plainformer.seeding import generator


def drawn(module):
    g = generator(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g))
    return module


def test_by_hand_the_bias_is_the_bucket_s_row():
    module = RelativeBias(2, causal_buckets, n_buckets=4, max_distance=8)
    with torch.no_grad():
        module.table.weight.copy_(torch.tensor([[0.0, 10], [1, 11], [2, 12], [3, 13]]))
    bias = module(relative_positions(1, 3))
    assert bias.tolist() == [[[2.0, 1.0, 0.0]], [[12.0, 11.0, 10.0]]]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("t", "s"), [(7, 7), (3, 11), (1, 149)])
def test_equals_t5_in_values_and_gradients(causal, t, s):
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(d_model=10, num_heads=5, d_kv=2, is_decoder=causal)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = drawn(RelativeBias(5, causal_buckets if causal else bidirectional_buckets))
    with torch.no_grad():
        theirs.relative_attention_bias.weight.copy_(ours.table.weight)
    got, want = ours(relative_positions(t, s)), theirs.compute_bias(t, s, past_seen_tokens=s - t)
    assert torch.equal(got, want[0])
    upstream = torch.randn(got.shape, generator=generator(1))
    got.backward(upstream)
    want.backward(upstream[None])
    close(ours.table.weight.grad, theirs.relative_attention_bias.weight.grad)


def test_t5_small_has_as_many_numbers_as_the_course_says():
    """Two tables, of the encoder and of the decoder: 512 numbers."""
    assert 2 * sum(p.numel() for p in RelativeBias(8).parameters()) == 512


def test_rows_may_have_distances_of_their_own():
    relative = torch.stack([relative_positions(2, 5), relative_positions(2, 5) - 3])
    module = drawn(RelativeBias(3))
    assert module(relative).shape == (2, 3, 2, 5)
    assert torch.equal(module(relative)[1], module(relative[1]))


@pytest.mark.parametrize(("t", "s"), [(7, 7), (3, 11)])
def test_shaw_s_keys_equal_a_loop_in_values_and_gradients(t, s):
    module = drawn(RelativeKeys(13, max_distance=2)).double()
    q = torch.randn(2, 3, t, 13, generator=generator(1), dtype=torch.float64, requires_grad=True)
    relative = relative_positions(t, s)
    got = module(q, relative)
    rows = []
    for i in range(t):
        clipped = [max(-2, min(2, d)) + 2 for d in relative[i].tolist()]
        rows.append(torch.stack([q[:, :, i] @ module.table.weight[c] for c in clipped], dim=-1))
    want = torch.stack(rows, dim=2) / 13**0.5
    close(got, want)
    upstream = torch.randn(got.shape, generator=generator(2), dtype=torch.float64)
    leaves = [q, module.table.weight]
    for mine, other in zip(
        torch.autograd.grad(got, leaves, upstream),
        torch.autograd.grad(want, leaves, upstream),
        strict=True,
    ):
        close(mine, other)


def test_shaw_s_keys_equal_wav2vec2_bert():
    from transformers import Wav2Vec2BertConfig
    from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert as modeling

    config = Wav2Vec2BertConfig(
        hidden_size=26,
        num_attention_heads=2,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=3,
        right_max_position_embeddings=3,
    )
    theirs = modeling.Wav2Vec2BertSelfAttention(config)
    ours = drawn(RelativeKeys(13, max_distance=3))
    with torch.no_grad():
        theirs.distance_embedding.weight.copy_(ours.table.weight)
    q = torch.randn(2, 3, 11, 13, generator=generator(1))
    _, want = modeling._apply_relative_key_position_encoding(theirs, q, q)
    close(ours(q, relative_positions(11)), want)


def test_shaw_s_keys_take_distances_of_each_row():
    module = drawn(RelativeKeys(13, max_distance=2))
    q = torch.randn(2, 3, 2, 13, generator=generator(1))
    relative = torch.stack([relative_positions(2, 5), relative_positions(2, 5) - 1])
    close(module(q, relative)[1], module(q[1:], relative[1])[0])


def test_what_cannot_work_is_refused_when_it_is_made():
    with pytest.raises(ValueError, match="n_heads must be at least 1, got 0"):
        RelativeBias(0)
    with pytest.raises(ValueError, match="max_distance must be above the 8"):
        RelativeBias(3, max_distance=8)
    with pytest.raises(ValueError, match="even and at least 4"):
        RelativeBias(3, n_buckets=7)
    for d_head, max_distance in [(0, 3), (5, -1)]:
        with pytest.raises(ValueError, match=f"got {max_distance} and {d_head}"):
            RelativeKeys(d_head, max_distance)
