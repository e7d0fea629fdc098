"""The edges over which other attention kernels fell, each as a check of one backend.

Every function takes a backend and raises AssertionError when the backend is wrong. The numbers in
the docstrings are those of the reports. Random inputs alone do not come near most of these places.
"""

import math

import torch

from plainformer.flash.semantics import kept_mask
from tests.lib.flash.agreement import Backend, Case, assert_agrees, inputs_of

# More keys than any tile that is tested is wide, and a rest.
CAUSAL = Case(causal=True, t=35, s=43)
SAME = {"values": {"q": lambda x: 0 * x + 1, "k": lambda x: 0 * x - 1}}  # each score is -d * scale


def sees(backend: Backend, case: Case) -> torch.Tensor:
    """Which keys have weight, read off the output: all scores alike, and key j has value e_j."""
    values = {"q": torch.zeros_like, "v": lambda x: torch.eye(*x.shape[2:]).expand(x.shape)}
    got = backend(inputs_of(case.but(b=1, h=1, g=1, d_value=case.s, values=values)))
    return got.o[0, 0] > 0


def one_query_and_one_key(backend):
    """Dao-AILab/flash-attention 334: NaN in the backward pass."""
    got = assert_agrees(backend, Case(t=1, s=1, size=9.0, values={"grad_lse": torch.zeros_like}))
    assert got.grad_q.abs().max() < 1e-4
    assert got.grad_k.abs().max() < 1e-4


def more_queries_than_keys(backend):
    """Dao-AILab/flash-attention 443: NaN where the first queries see nothing."""
    assert_agrees(backend, Case(causal=True, h=1, t=67, s=3))
    assert_agrees(backend, Case(causal=True, h=1, t=67, s=31))


def a_query_that_sees_nothing(backend):
    """Dao-AILab/flash-attention 1778, tracel-ai/burn 4694, pytorch 131060: zeros, and -inf."""
    got = assert_agrees(backend, Case(causal=True, t=23, s=19))
    assert got.o[:, :, :4].eq(0).all()
    assert got.lse[:, :, :4].eq(-math.inf).all()
    assert got.grad_q[:, :, :4].eq(0).all()
    got = assert_agrees(backend, Case(b=2, window=(2, 0), key_lengths=(0, 5)))
    assert got.o[0].eq(0).all()
    assert all(x[0].eq(0).all() for x in got[2:])


def a_first_tile_that_some_rows_do_not_see(backend):
    """pytorch 127055: NaN for long sequences with a mask that ignores old tokens."""
    for window in [(3, 0), (17, 0), (5, 4)]:
        assert_agrees(backend, Case(h=1, t=53, s=53, window=window))


def very_negative_scores(backend):
    """flashinfer 4401: a finite number in place of -inf was larger than the scores."""
    assert_agrees(backend, CAUSAL.but(scale=1e5 / 16, **SAME))
    assert_agrees(backend, Case(b=2, key_lengths=(18, 7), scale=1e5 / 16, **SAME))


def a_rest_of_keys_and_scores_far_below_zero(backend):
    """pytorch 196678: keys past the end scored 0, and exp(0 - lse) overflowed in dq."""
    assert_agrees(backend, Case(t=21, s=37, scale=16.0, **SAME))
    assert_agrees(backend, Case(b=2, t=5, s=37, scale=16.0, key_lengths=(5, 33), **SAME))


def a_window_and_scores_far_below_zero(backend):
    """Dao-AILab/flash-attention 1947: weights that were not masked after the exponential."""
    key = torch.arange(53.0, dtype=torch.float64)[:, None]
    ramp = {"q": lambda x: 0 * x + 1, "k": lambda x: 0 * x - 2 + (key[-x.shape[2] :] > 40)}
    for window in [(7, 0), (0, 7), (3, 2)]:
        assert_agrees(backend, Case(h=1, t=53, s=53, window=window, scale=16.0, values=ramp))


def causal_is_aligned_at_the_bottom_right(backend):
    """Dao-AILab/flash-attention 282, 402, 517; pytorch 103082, 108108, 144858."""
    printed = "1 1 1 1 0\n1 1 1 1 1"
    want = [[x == "1" for x in row.split()] for row in printed.splitlines()]
    assert sees(backend, Case(causal=True, t=2, s=5)).tolist() == want
    printed = "0 0\n0 0\n0 0\n1 0\n1 1"
    want = [[x == "1" for x in row.split()] for row in printed.splitlines()]
    assert sees(backend, Case(causal=True, t=5, s=2)).tolist() == want


def the_last_query_alone_is_the_last_row_of_all(backend):
    """Decoding: one query and a cache of keys."""
    x = inputs_of(CAUSAL)
    full = backend(x)
    last = backend(x._replace(**{n: getattr(x, n)[:, :, -1:] for n in ("q", "grad_o", "grad_lse")}))
    torch.testing.assert_close(full.o[:, :, -1:], last.o)
    torch.testing.assert_close(full.lse[:, :, -1:], last.lse)
    torch.testing.assert_close(full.grad_q[:, :, -1:], last.grad_q)


def a_window_counts_its_keys(backend):
    """transformers 39408, Dao-AILab/flash-attention 1133: one key too many or too few."""
    for left, right in [(0, 0), (3, 0), (16, 0), (2, 3), (0, 5)]:
        seen = sees(backend, Case(t=37, s=37, window=(left, right)))
        i = torch.arange(37)
        want = i.clamp(max=left) + 1 + (36 - i).clamp(max=right)
        assert torch.equal(seen.sum(dim=1), want), (left, right)
        assert torch.equal(seen, kept_mask(37, 37, (left, right))[0, 0])


def a_window_as_wide_as_the_text_is_causal(backend):
    case = Case(t=41, s=41)
    wide, causal = (
        backend(inputs_of(c)) for c in (case.but(window=(40, 0)), case.but(causal=True))
    )
    assert all(torch.equal(a, b) for a, b in zip(wide, causal, strict=True))


def widths(backend, sizes=((8, 8), (24, 40), (80, 16), (96, 32))):
    """triton 621, tiny-flash-attention 12: right for one width only."""
    for d_head, d_value in sizes:
        assert_agrees(
            backend, Case(b=2, h=1, t=17, s=21, d_head=d_head, d_value=d_value, causal=True)
        )


def lengths_around_a_tile(backend, lengths=(1, 2, 15, 16, 17, 31, 33)):
    """triton 2059, tokamax 316: no check of the bounds."""
    for n, length in enumerate(lengths):
        other = lengths[(n * 3 + 1) % len(lengths)]
        assert_agrees(backend, Case(b=1, h=1, g=1, t=length, s=other))
        assert_agrees(backend, Case(b=1, h=1, g=1, t=length, s=length, causal=True))


def padding_is_never_read(backend):
    """vLLM 47305, 30887: 0 * NaN is NaN."""

    def spoil(x):
        x[0, :, 11:], x[1, :, 17:] = math.nan, math.nan
        return x

    clean = Case(b=2, key_lengths=(11, 17))
    x, want = inputs_of(clean.but(values={"k": spoil, "v": spoil})), backend(inputs_of(clean))
    assert all(torch.equal(a, b) for a, b in zip(backend(x), want, strict=True))
    assert want.grad_k[0, :, 11:].eq(0).all()
    assert want.grad_v[1, :, 17:].eq(0).all()


def what_lies_before_every_window_is_never_read(backend):
    """vLLM 30887, for keys in tiles of their own."""

    def spoil(x):
        x[:, :, :128] = math.nan
        return x

    clean = Case(b=1, h=1, g=1, t=5, s=149, window=(7, 0))
    x, want = inputs_of(clean.but(values={"k": spoil, "v": spoil})), backend(inputs_of(clean))
    assert all(torch.equal(a, b) for a, b in zip(backend(x), want, strict=True))


def memory_in_other_orders(backend):
    """FlagGems 5896, ROCm/pytorch 3230, pytorch 112577, 181133, 187506."""
    for layout in ["positions first", "fused", "width strided"]:
        assert_agrees(backend, Case(b=2, h=4, g=2, t=11, s=13, layout=layout))
    x = inputs_of(CAUSAL)
    alone = x._replace(v=x.v.mT.contiguous().mT)
    torch.testing.assert_close(backend(alone), backend(x))


def a_gradient_that_is_one_number(backend):
    """Dao-AILab/flash-attention 355: what `o.sum().backward()` sends has strides of zero."""
    x = inputs_of(CAUSAL)
    one = torch.ones(1, 1, 1, 1)
    pushed = x._replace(grad_o=one.expand(x.grad_o.shape), grad_lse=one[0].expand(x.grad_lse.shape))
    dense = pushed._replace(
        grad_o=torch.ones(x.grad_o.shape), grad_lse=torch.ones(x.grad_lse.shape)
    )
    assert all(torch.equal(a, b) for a, b in zip(backend(pushed), backend(dense), strict=True))


def keys_shared_by_all_sequences(backend):
    """Expanded, not repeated: strides of zero in the inputs."""
    x = inputs_of(Case(b=2, h=2, g=2))
    shared = x._replace(k=x.k[:1].expand(x.k.shape), v=x.v[:, :1].expand(x.v.shape))
    dense = shared._replace(k=shared.k.contiguous(), v=shared.v.contiguous())
    assert all(torch.equal(a, b) for a, b in zip(backend(shared), backend(dense), strict=True))


def heads_that_share_keys(backend):
    """native-sparse-attention-triton 27, onnx 7274: groups split the wrong way."""
    for h, g in [(6, 2), (6, 3), (8, 1)]:
        assert_agrees(backend, Case(causal=True, h=h, g=g, t=15, s=17))
    assert_agrees(backend, Case(b=2, h=6, g=2, t=1, s=35, key_lengths=(35, 11)))


def twice_the_same(backend):
    """Dao-AILab/flash-attention 414, 988, 2158: sums in whatever order the threads arrive."""
    x = inputs_of(CAUSAL.but(b=2, h=2, g=1))
    assert all(torch.equal(a, b) for a, b in zip(backend(x), backend(x), strict=True))


def nothing_at_all(backend):
    """Dao-AILab/flash-attention 2470, 2562: lengths of zero."""
    for sizes in [{"s": 0}, {"t": 0}, {"b": 0}, {"t": 0, "s": 0}]:
        for causal in (False, True):
            assert_agrees(backend, Case(layout="plain", causal=causal).but(**sizes))


def memory_that_nobody_cleared(backend):
    """Dao-AILab/flash-attention 2324, fla 892: results that were never written."""
    torch.use_deterministic_algorithms(True)  # fills torch.empty with NaN
    try:
        assert torch.empty(3).isnan().all()
        assert_agrees(backend, Case(b=2, causal=True, t=67, s=31, key_lengths=(31, 3)))
        assert_agrees(backend, Case(t=3, s=53, window=(4, 0)))
        assert_agrees(backend, Case(s=0, layout="plain"))
    finally:
        torch.use_deterministic_algorithms(False)


def scores_beyond_float16(backend):
    """mlc-llm 1638, metal-flash-attention 8: 60 * 60 * 64 is more than float16 holds."""
    x = inputs_of(Case(d_head=64, size=60.0, dtype=torch.float16, scale=1.0))
    got = backend(x)
    assert all(y.isfinite().all() for y in got)
    assert got.lse.max() > 65504


def half_precisions(backend):
    """triton 11584, 4972: bfloat16 is no number to the interpreter."""
    for dtype in (torch.float16, torch.bfloat16):
        assert_agrees(backend, CAUSAL.but(dtype=dtype, d_head=24))
        assert_agrees(backend, Case(b=2, dtype=dtype, key_lengths=(3, 19), window=(4, 2)))


def a_maximum_that_keeps_growing_or_shrinking(backend):
    """Each tile brings a larger score, or the first holds the largest: old sums must be scaled."""
    for sign in (1, -1):
        grow = {"q": lambda x: x.abs(), "k": lambda x, sign=sign: x.abs() * _ramp(x, sign)}
        assert_agrees(backend, Case(h=1, t=21, s=83, values=grow))


def _ramp(x, sign):
    return sign * torch.linspace(0, 4, x.shape[2], dtype=x.dtype)[:, None]


def scales_of_all_kinds(backend):
    for scale in (-0.7, 0.0, 3.0):
        assert_agrees(backend, Case(causal=True, h=1, scale=scale))


EDGES = [
    one_query_and_one_key,
    more_queries_than_keys,
    a_query_that_sees_nothing,
    a_first_tile_that_some_rows_do_not_see,
    very_negative_scores,
    a_rest_of_keys_and_scores_far_below_zero,
    a_window_and_scores_far_below_zero,
    causal_is_aligned_at_the_bottom_right,
    the_last_query_alone_is_the_last_row_of_all,
    a_window_counts_its_keys,
    a_window_as_wide_as_the_text_is_causal,
    widths,
    lengths_around_a_tile,
    padding_is_never_read,
    what_lies_before_every_window_is_never_read,
    memory_in_other_orders,
    a_gradient_that_is_one_number,
    keys_shared_by_all_sequences,
    heads_that_share_keys,
    twice_the_same,
    nothing_at_all,
    memory_that_nobody_cleared,
    scores_beyond_float16,
    half_precisions,
    a_maximum_that_keeps_growing_or_shrinking,
    scales_of_all_kinds,
]
