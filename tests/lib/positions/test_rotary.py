import pytest
import torch
from jaxtyping import TypeCheckError
from torch.testing import assert_close as close

from plainformer.positions.rotary import (
    Rotary,
    rotate_half_split,
    rotate_interleaved,
    rows_to_half_split,
    rows_to_interleaved,
    to_half_split,
    to_interleaved,
)
from plainformer.positions.sinusoidal import frequencies
from plainformer.seeding import generator

# b, h, t, d_head = 2, 3, 5, 22: eleven pairs; more than four numbers, or the layouts' conversions
# would be each other's inverse and their own.
B, H, T, D = 2, 3, 5, 22
POSITIONS = torch.tensor([[3, 4, 5, 6, 7], [1000, 2, 0, 17, 31]])
EXACT = {"dtype": torch.float64}
ROTATIONS = [rotate_interleaved, rotate_half_split]


@pytest.fixture
def q():
    return torch.randn(B, H, T, D, generator=generator(0), **EXACT)


@pytest.fixture
def k():
    return torch.randn(B, H, T, D, generator=generator(1), **EXACT)


def by_matrices(x, positions, freqs):
    """Float64, one 2 x 2 matrix at a time, interleaved."""
    out = x.clone()
    for b in range(x.shape[0]):
        for t in range(x.shape[2]):
            for i, theta in enumerate(freqs.tolist()):
                angle = torch.tensor(positions[b, t].item() * theta, **EXACT)
                c, s = angle.cos(), angle.sin()
                matrix = torch.stack([torch.stack([c, -s]), torch.stack([s, c])])
                out[b, :, t, 2 * i : 2 * i + 2] = x[b, :, t, 2 * i : 2 * i + 2] @ matrix.T
    return out


@pytest.mark.parametrize(
    ("m", "n", "theta", "want"),
    [
        *[(m, n, 1.0, -6.781229) for m, n in [(3, 1), (5, 3), (102, 100)]],
        *[(7, 7, 1.0, 1.0), (1, 3, 1.0, 5.948935)],
        *[(3, 1, 0.1, -0.410619), (1, 3, 0.1, 2.370752)],
    ],
)
def test_by_hand_one_pair(m, n, theta, want):
    freqs = torch.tensor([theta], **EXACT)
    for rotate in ROTATIONS:
        turned = rotate(torch.tensor([[1.0, 2.0]]), torch.tensor([m]), freqs)
        other = rotate(torch.tensor([[3.0, -1.0]]), torch.tensor([n]), freqs)
        close((turned @ other.T).item(), want, atol=1e-5, rtol=0)  # float32 vectors


def test_interleaved_equals_a_matrix_for_each_pair(q):
    freqs = frequencies(D)
    got = rotate_interleaved(q, POSITIONS[:, None], freqs)
    close(got, by_matrices(q, POSITIONS, freqs))


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_scores_depend_on_the_distance_alone(rotate, q, k):
    freqs, here = frequencies(D), torch.arange(T)
    scores = rotate(q, here + 2, freqs) @ rotate(k, here, freqs).mT
    moved = rotate(q, here + 1002, freqs) @ rotate(k, here + 1000, freqs).mT
    close(scores, moved)
    assert not torch.allclose(scores, rotate(q, here, freqs) @ rotate(k, here, freqs).mT)


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_position_zero_changes_nothing_and_no_position_changes_a_length(rotate, q):
    assert torch.equal(rotate(q, torch.zeros(T), frequencies(D)), q)
    turned = rotate(q, POSITIONS[:, None], frequencies(D))
    close(turned.norm(dim=-1), q.norm(dim=-1))
    assert not torch.allclose(turned, q)


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_a_part_from_the_middle_is_turned_as_in_the_whole(rotate, q):
    whole = rotate(q, torch.arange(T), frequencies(D))
    close(rotate(q[:, :, 3:], torch.arange(3, T), frequencies(D)), whole[:, :, 3:])


def test_the_layouts_are_one_rotation_in_two_orders(q):
    positions, freqs = POSITIONS[:, None], frequencies(D)
    turned = rotate_interleaved(q, positions, freqs)
    close(rotate_half_split(to_half_split(q), positions, freqs), to_half_split(turned))
    assert torch.equal(to_interleaved(to_half_split(q)), q)
    assert torch.equal(to_half_split(to_interleaved(q)), q)
    assert not torch.equal(to_interleaved(q), to_half_split(q))
    assert not torch.allclose(rotate_half_split(q, positions, freqs), turned)


def test_reordered_projections_give_the_same_scores_in_the_other_layout():
    g, here, freqs = generator(2), torch.arange(T), frequencies(D)
    x = torch.randn(B, T, 13, generator=g, **EXACT)
    weights = [torch.randn(H * D, 13, generator=g, **EXACT) for _ in "qk"]
    biases = [torch.randn(H * D, generator=g, **EXACT) for _ in "qk"]

    def scores(rotate, weights, biases):
        q, k = (
            rotate((x @ w.T + b).unflatten(-1, (H, D)).transpose(1, 2), here, freqs)
            for w, b in zip(weights, biases, strict=True)
        )
        return q @ k.mT

    want = scores(rotate_interleaved, weights, biases)
    other = [[rows_to_half_split(p, H) for p in of] for of in (weights, biases)]
    close(scores(rotate_half_split, *other), want)
    assert not torch.allclose(scores(rotate_half_split, weights, biases), want)
    for before, after in zip(weights + biases, other[0] + other[1], strict=True):
        assert torch.equal(rows_to_interleaved(after, H), before)


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_fewer_frequencies_leave_the_last_numbers_alone(rotate, q):
    freqs = frequencies(14)
    out = rotate(q, POSITIONS[:, None], freqs)
    assert torch.equal(out[..., 14:], q[..., 14:])
    close(out[..., :14], rotate(q[..., :14], POSITIONS[:, None], freqs))


def test_gradients_turn_back(q):
    """The gradient of a rotation is the rotation the other way."""
    positions, freqs = POSITIONS[:, None], frequencies(D)
    upstream = torch.randn(q.shape, generator=generator(3), **EXACT)
    for rotate in ROTATIONS:
        x = q.clone().requires_grad_()
        rotate(x, positions, freqs).backward(upstream)
        close(x.grad, rotate(upstream, -positions, freqs))


def test_half_split_equals_llama(q, k):
    from transformers.models.llama.modeling_llama import (
        LlamaConfig,
        LlamaRotaryEmbedding,
        apply_rotary_pos_emb,
    )

    config = LlamaConfig(
        hidden_size=H * D,
        num_attention_heads=H,
        rope_parameters={"rope_type": "default", "rope_theta": 31_000.0},
    )
    cos, sin = LlamaRotaryEmbedding(config)(q.float(), POSITIONS)
    want = apply_rotary_pos_emb(q.float(), k.float(), cos, sin)
    freqs = frequencies(D, 31_000.0)
    for x, theirs in zip((q, k), want, strict=True):
        got = rotate_half_split(x.float(), POSITIONS[:, None], freqs)
        close(got, theirs, atol=1e-3, rtol=0)  # their float32 angle at position 1000
        close(got[0], theirs[0], atol=1e-5, rtol=0)


def test_half_split_of_a_part_equals_gpt_neox(q, k):
    from transformers.models.gpt_neox.modeling_gpt_neox import (
        GPTNeoXConfig,
        GPTNeoXRotaryEmbedding,
        apply_rotary_pos_emb,
    )

    config = GPTNeoXConfig(
        hidden_size=H * D,
        num_attention_heads=H,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 14 / 22,
        },
    )
    near = POSITIONS[:1].expand(B, T)
    cos, sin = GPTNeoXRotaryEmbedding(config)(q.float(), near)
    assert cos.shape[-1] == 14
    want, _ = apply_rotary_pos_emb(q.float(), k.float(), cos, sin)
    got = rotate_half_split(q.float(), near[:, None], frequencies(14))
    close(got, want, atol=1e-5, rtol=0)


def test_interleaved_of_a_part_equals_gptj(q):
    from transformers.models.gptj.modeling_gptj import (
        apply_rotary_pos_emb,
        create_sinusoidal_positions,
    )

    table = create_sinusoidal_positions(37, 14)[POSITIONS[:1].expand(B, T)]
    sin, cos = table.chunk(2, dim=-1)
    part = q.float()[..., :14].transpose(1, 2)  # theirs has the heads behind the positions
    want = apply_rotary_pos_emb(part, sin, cos).transpose(1, 2)
    got = rotate_interleaved(q.float(), POSITIONS[:1, None], frequencies(14))
    close(got[..., :14], want, atol=1e-5, rtol=0)


def test_interleaved_equals_complex_numbers_as_in_deepseek_v2(q, k):
    from transformers.models.deepseek_v2.modeling_deepseek_v2 import apply_rotary_emb

    angle = POSITIONS[..., None] * frequencies(D)
    turns = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)
    want, _ = apply_rotary_emb(q.float(), k.float(), turns)
    close(rotate_interleaved(q.float(), POSITIONS[:, None], frequencies(D)), want)


def test_half_precision_keeps_its_dtype_and_turns_exactly_far_out(q):
    """The angle is never rounded to bfloat16, where position 1000 would become 1000 +- 4."""
    for rotate in ROTATIONS:
        got = rotate(q.bfloat16(), POSITIONS[:, None], frequencies(D))
        assert got.dtype is torch.bfloat16
        want = rotate(q.bfloat16().double(), POSITIONS[:, None], frequencies(D))
        close(got.double(), want, atol=1e-5, rtol=2**-8)  # one rounding, of the result


def test_rotary_holds_its_settings(q):
    rotary = Rotary(frequencies=frequencies(14), rotate=rotate_half_split, attention_factor=1.5)
    got = rotary(q, POSITIONS[:, None])
    plain = rotate_half_split(q, POSITIONS[:, None], frequencies(14))
    close(got[..., :14], 1.5 * plain[..., :14])
    assert torch.equal(got[..., 14:], q[..., 14:])
    assert Rotary(frequencies=frequencies(4)).rotate is rotate_interleaved


def test_more_frequencies_than_pairs_are_refused(q):
    for rotate in ROTATIONS:
        with pytest.raises(ValueError, match=r"got 12 .*d_head=22; 11 frequencies are the most"):
            rotate(q, POSITIONS[:, None], frequencies(24))


def test_odd_widths_and_rows_are_refused():
    for convert in (to_half_split, to_interleaved):
        with pytest.raises(ValueError, match="d_head must be a multiple of pair"):
            convert(torch.zeros(2, 7))
    for convert in (rows_to_half_split, rows_to_interleaved):
        with pytest.raises(ValueError, match="rows must be a multiple of two_for_each_head"):
            convert(torch.zeros(21, 5), 3)


def test_positions_of_other_lengths_are_refused(q):
    with pytest.raises(TypeCheckError, match="positions"):
        rotate_interleaved(q, torch.arange(T + 1), frequencies(D))
