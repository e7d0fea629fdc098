import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plainformer.flash import launch
from plainformer.flash.launch import CONFIGS, FLOAT32, Blocks, blocks_for, triton_forward
from plainformer.flash.semantics import reference_attention
from tests.lib.flash.agreement import Case, assert_agrees, kernels

KERNELS = ("forward", "grad_kv", "grad_q")


@given(
    heads=st.sampled_from([(1, 1), (2, 1), (4, 2)]),
    t=st.integers(0, 37),
    s=st.integers(0, 37),
    widths=st.tuples(st.integers(1, 33), st.integers(1, 33)),
    left=st.none() | st.integers(0, 40),
    right=st.none() | st.integers(0, 40),
    lengths=st.none() | st.floats(0, 1),
    blocks=st.sampled_from([(16, 16), (32, 16), (16, 32)]),
    seed=st.integers(0, 9),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_any_shape_any_window_any_blocks(heads, t, s, widths, left, right, lengths, blocks, seed):
    case = Case(
        h=heads[0], g=heads[1], t=t, s=s, d_head=widths[0], d_value=widths[1],
        window=(left, right), seed=seed,
        key_lengths=None if lengths is None else (int(lengths * s),),
    )  # fmt: skip
    # Factor 4: a maximum over a handful of numbers is no steady measure of PyTorch's own error.
    assert_agrees(kernels(*blocks), case, slack=4.0)


def sparse(rows: int, width: int, step: int, dtype=torch.float16) -> torch.Tensor:
    """Rows so far apart that their places do not fit into 32 bits; the gaps cost no memory."""
    return torch.empty(step * rows, dtype=dtype).as_strided((1, 1, rows, width), (1, 1, step, 1))


def far_apart(far: str) -> None:
    """SageAttention 386, fla 1080, ffpa-attn 299, flash-attention 1500, sglang 20389.

    34 rows at steps of 2**27 end beyond 2**32; the last tiles begin beyond 2**31.
    """
    near = {name: torch.randn(1, 1, 34, 16).half() for name in "qkv"}
    given = dict(near)
    given[far] = sparse(34, 16, 2**27).copy_(near[far])
    x = given["q"], given["k"], given["v"]
    o, lse = triton_forward(*x, scale=0.25, blocks=Blocks(16, 16, 4, 1))
    want, _ = reference_attention(*near.values(), scale=0.25)
    torch.testing.assert_close(o, want.half(), atol=2e-3, rtol=2e-3)
    grads = launch.triton_backward(
        *x, o, lse, near["q"], scale=0.25,
        kv_blocks=Blocks(16, 16, 4, 1), q_blocks=Blocks(16, 16, 4, 1),
    )  # fmt: skip
    x = near.values()
    want = launch.triton_backward(*x, o, lse, near["q"], scale=0.25)
    for a, b in zip(grads, want, strict=True):
        torch.testing.assert_close(a, b, atol=2e-3, rtol=2e-3)


@pytest.mark.skipif(not launch.is_interpreted(), reason="A GPU would have to hold all the gaps.")
@pytest.mark.parametrize("far", ["q", "k", "v"])
def test_places_beyond_32_bits(far):
    far_apart(far)


def test_lengths_beyond_the_text_are_cut():
    x = torch.randn(2, 1, 7, 16)
    blocks = Blocks(16, 16, 4, 1)
    wrong, right = (
        triton_forward(x, x, x, key_lengths=torch.tensor(y), scale=0.25, blocks=blocks)
        for y in ([99, -3], [7, 0])
    )
    assert torch.equal(wrong[0], right[0])
    assert torch.equal(wrong[1], right[1])


def test_the_table_has_a_row_for_every_width_that_is_promised():
    for arch in ("sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "gfx942", "sm_75"):
        for width in (16, 80, 96, 128, 256):
            for kernel in KERNELS:
                if kernel == "forward" or width <= 128:
                    assert blocks_for(arch, width, kernel, torch.bfloat16) in CONFIGS.values()


def test_an_architecture_takes_the_newest_row_that_is_not_newer():
    want = CONFIGS["sm_80", 128, "forward"]
    assert blocks_for("sm_86", 80, "forward", torch.float16) == want
    assert blocks_for("sm_75", 80, "forward", torch.float16) == want
    want = CONFIGS["sm_90", 64, "forward"]
    assert blocks_for("sm_120", 16, "forward", torch.float16) == want


def test_float32_has_a_row_of_its_own():
    assert blocks_for("sm_90", 128, "grad_kv", torch.float32) == FLOAT32


def test_a_width_that_no_row_holds_is_refused():
    with pytest.raises(ValueError, match="grad_kv takes heads up to 128 wide, got 256"):
        blocks_for("sm_90", 256, "grad_kv", torch.bfloat16)


def test_the_kernels_run_with_the_blocks_of_the_table():
    x = torch.randn(1, 1, 5, 80)
    o, _ = triton_forward(x, x, x, scale=0.1)
    torch.testing.assert_close(o, reference_attention(x, x, x, scale=0.1)[0].float())
