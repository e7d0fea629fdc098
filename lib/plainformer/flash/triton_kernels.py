"""Flash attention as four Triton kernels: forward, delta, gradients of keys and values, of queries.

Each program owns the tile that it writes and walks over those that it reads, so nothing is added up
by several programs, and two runs give the same bits. Strides count elements. Everything that is
multiplied by a stride is 64 bits wide first: a cache of keys may have more than 2**31 entries.

One source for the GPU and for Triton's interpreter. UPCAST is for the latter alone, which takes
bfloat16 for integers. `input_precision="ieee"` keeps float32 from being rounded to TF32.

Importing this file imports Triton: leave it to `flash.launch`.
Source: Dao 2023 (arXiv:2307.08691), algorithms 1 and 2; the loop over keys and the one over queries
are kernels of their own here.
"""

import inspect
from types import FunctionType

import triton
import triton.language as tl

from plainformer.flash import semantics


def _jit(function):
    """`triton.jit` of the function itself: a shape hook, in tests, wraps it when it is defined."""
    return triton.jit(inspect.unwrap(function))


def _kernel(function):
    """What is launched. A new length or window is no reason to compile it anew."""
    lengths = ["t", "s", "left", "right"]
    return triton.jit(inspect.unwrap(function), do_not_specialize=lengths)


def _shared(function):
    """The same lines, for Triton: it wants to see its language among the globals of a function."""
    plain = inspect.unwrap(function)
    return _jit(FunctionType(plain.__code__, globals(), plain.__name__))


keep = _shared(semantics.keep)
key_range = _shared(semantics.key_range)

INFINITY = tl.constexpr(float("inf"))
LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)


@_jit
def _load(at, rows_ok, columns_ok, MASK_ROWS: tl.constexpr, MASK_COLUMNS: tl.constexpr, UPCAST):
    """A tile, with zeros where it hangs over an edge."""
    if MASK_ROWS and MASK_COLUMNS:
        tile = tl.load(at, mask=rows_ok[:, None] & columns_ok[None, :], other=0.0)
    elif MASK_ROWS:
        tile = tl.load(at, mask=rows_ok[:, None], other=0.0)
    elif MASK_COLUMNS:
        tile = tl.load(at, mask=columns_ok[None, :], other=0.0)
    else:
        tile = tl.load(at)
    if UPCAST:
        tile = tile.to(tl.float32)
    return tile


@_jit
def _store(at, tile, rows_ok, columns_ok):
    tl.store(at, tile.to(at.dtype.element_ty), mask=rows_ok[:, None] & columns_ok[None, :])


@_jit
def _places(base, batch, head, stride_b, stride_h):
    """Where a head begins."""
    return base + batch.to(tl.int64) * stride_b + head.to(tl.int64) * stride_h


@_jit
def _tile(base, rows, columns, stride_row, stride_column):
    """Where the entries of a tile are."""
    rows = rows.to(tl.int64)[:, None] * stride_row
    return base + rows + columns.to(tl.int64)[None, :] * stride_column


@_jit
def _length(key_lengths, batch, s):
    """How many keys the sequence has."""
    length = s
    if key_lengths is not None:
        length = min(max(tl.load(key_lengths + batch).to(tl.int32), 0), s)
    return length


@_jit
def _loops(first, last, shift, length, left, right, BLOCK: tl.constexpr):
    """Where the three loops over keys begin and end: masked, without a mask, masked.

    Tiles begin at multiples of BLOCK, whoever asks: a query has the same sums in any company.
    """
    low, high, all_low, all_high = key_range(first, last, shift, length, left, right)
    low = low // BLOCK * BLOCK
    high = max(high, low)  # it is below 0 where queries stand before the first key
    all_low = min(tl.cdiv(all_low, BLOCK) * BLOCK, high)
    all_high = max(all_high // BLOCK * BLOCK, all_low)
    return low, all_low, all_high, high


# Forward ------------------------------------------------------------------------------------------


@_jit
def _meet(
    weighted, largest, total, q_tile, k_at, v_at, k_s, v_s, start, rows, columns, d_ok, v_ok,
    shift, length, scale, left, right,
    MASKED: tl.constexpr, MASK_D: tl.constexpr, MASK_V: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Let a tile of queries meet a tile of keys; `scale` brings the scores to powers of two."""
    keys = start + columns
    in_text = keys < length
    k_tile = _load(k_at + tl.cast(start, tl.int64) * k_s, in_text, d_ok, MASKED, MASK_D, UPCAST)
    v_tile = _load(v_at + tl.cast(start, tl.int64) * v_s, in_text, v_ok, MASKED, MASK_V, UPCAST)
    scores = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
    if MASKED:
        kept = keep(rows[:, None], keys[None, :], shift, length, left, right)
        scores = tl.where(kept, scores, -INFINITY)
    new = tl.maximum(largest, tl.max(scores, 1))
    safe = new
    if MASKED:  # a row that has seen nothing yet: -inf - (-inf) would be NaN, for good
        safe = tl.where(new == -INFINITY, 0.0, new)
    weights = tl.exp2(scores - safe[:, None])
    keep_old = tl.exp2(largest - safe)
    total = total * keep_old + tl.sum(weights, 1)
    weighted = weighted * keep_old[:, None]
    weighted = tl.dot(weights.to(v_tile.dtype), v_tile, weighted, input_precision="ieee")
    return weighted, new, total


@_kernel
def forward_kernel(
    q, k, v, o, lse, key_lengths,
    q_b, q_h, q_t, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    h, n, t, s, scale, left, right,
    D_HEAD: tl.constexpr, D_VALUE: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """One program: BLOCK_M queries of one head, all of their keys. `n` query heads share keys."""
    n_tiles = tl.cdiv(t, BLOCK_M)
    # Causal, the last queries have the most keys: they begin, so that nobody waits for them.
    first = (n_tiles - 1 - tl.program_id(0) % n_tiles) * BLOCK_M
    row_of_heads = tl.program_id(0) // n_tiles
    batch, head = row_of_heads // h, row_of_heads % h
    rows, columns = first + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    d, dv = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_V)
    rows_ok, d_ok, v_ok = rows < t, d < D_HEAD, dv < D_VALUE
    MASK_D: tl.constexpr = D_HEAD != BLOCK_D
    MASK_V: tl.constexpr = D_VALUE != BLOCK_V

    q_at = _tile(_places(q, batch, head, q_b, q_h), rows, d, q_t, q_d)
    q_tile = _load(q_at, rows_ok, d_ok, True, MASK_D, UPCAST)
    k_at = _tile(_places(k, batch, head // n, k_b, k_h), columns, d, k_s, k_d)
    v_at = _tile(_places(v, batch, head // n, v_b, v_h), columns, dv, v_s, v_d)
    largest = tl.full([BLOCK_M], -INFINITY, tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    weighted = tl.zeros([BLOCK_M, BLOCK_V], tl.float32)

    length = _length(key_lengths, batch, s)
    last = min(first + BLOCK_M, t) - 1
    low, all_low, all_high, high = _loops(first, last, s - t, length, left, right, BLOCK_N)
    if left is not None:
        for start in range(low, all_low, BLOCK_N):
            weighted, largest, total = _meet(
                weighted, largest, total, q_tile, k_at, v_at, k_s, v_s, start, rows,
                columns, d_ok, v_ok, s - t, length, scale * LOG2_E, left, right,
                True, MASK_D, MASK_V, UPCAST,
            )  # fmt: skip
    for start in range(all_low, all_high, BLOCK_N):
        weighted, largest, total = _meet(
            weighted, largest, total, q_tile, k_at, v_at, k_s, v_s, start, rows,
            columns, d_ok, v_ok, s - t, length, scale * LOG2_E, left, right,
            False, MASK_D, MASK_V, UPCAST,
        )  # fmt: skip
    for start in range(all_high, high, BLOCK_N):
        weighted, largest, total = _meet(
            weighted, largest, total, q_tile, k_at, v_at, k_s, v_s, start, rows,
            columns, d_ok, v_ok, s - t, length, scale * LOG2_E, left, right,
            True, MASK_D, MASK_V, UPCAST,
        )  # fmt: skip

    total = tl.where(total == 0, 1.0, total)  # saw nothing: 0 / 1, and largest is -inf
    row = row_of_heads.to(tl.int64) * t + rows
    _store(_tile(o, row, dv, D_VALUE, 1), weighted / total[:, None], rows_ok, v_ok)
    tl.store(lse + row, (largest + tl.log2(total)) * LN_2, mask=rows_ok)


# Backward -----------------------------------------------------------------------------------------


@_kernel
def delta_kernel(
    o, grad_o, grad_lse, delta, g_b, g_h, g_t, g_d, l_b, l_h, l_t, h, t,
    D_VALUE: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """delta = sum of o * grad_o over a row, less the gradient of its log-sum-exp."""
    n_tiles = tl.cdiv(t, BLOCK_M)
    rows = tl.program_id(0) % n_tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    row_of_heads = tl.program_id(0) // n_tiles
    batch, head = row_of_heads // h, row_of_heads % h
    dv = tl.arange(0, BLOCK_V)
    rows_ok, v_ok = rows < t, dv < D_VALUE
    row = row_of_heads.to(tl.int64) * t + rows
    o_tile = _load(_tile(o, row, dv, D_VALUE, 1), rows_ok, v_ok, True, True, True)
    g_at = _tile(_places(grad_o, batch, head, g_b, g_h), rows, dv, g_t, g_d)
    sums = tl.sum(o_tile * _load(g_at, rows_ok, v_ok, True, True, True), 1)
    if grad_lse is not None:
        at = _places(grad_lse, batch, head, l_b, l_h) + rows.to(tl.int64) * l_t
        sums -= tl.load(at, mask=rows_ok, other=0.0)
    tl.store(delta + row, sums, mask=rows_ok)


@_jit
def _lse_of(lse, row, rows_ok):
    """In powers of two, and +inf where it was -inf or the row is none: exp2(x - inf) is 0."""
    loaded = tl.load(lse + row, mask=rows_ok, other=INFINITY)
    return tl.where(loaded == -INFINITY, INFINITY, loaded * LOG2_E)


@_jit
def _grad_q_of(
    grad_q, q_tile, g_tile, lse_tile, delta_tile, k_at, v_at, k_s, v_s, start, rows, columns,
    d_ok, v_ok, shift, length, scale, left, right,
    MASKED: tl.constexpr, MASK_D: tl.constexpr, MASK_V: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """What a tile of keys adds to the gradient of a tile of queries."""
    keys = start + columns
    in_text = keys < length
    k_tile = _load(k_at + tl.cast(start, tl.int64) * k_s, in_text, d_ok, MASKED, MASK_D, UPCAST)
    v_tile = _load(v_at + tl.cast(start, tl.int64) * v_s, in_text, v_ok, MASKED, MASK_V, UPCAST)
    scores = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
    if MASKED:  # before the exponential, which may overflow for a key that nobody sees
        kept = keep(rows[:, None], keys[None, :], shift, length, left, right)
        scores = tl.where(kept, scores, -INFINITY)
    weights = tl.exp2(scores - lse_tile[:, None])
    grad_weights = tl.dot(g_tile, tl.trans(v_tile), input_precision="ieee")
    grad_scores = weights * (grad_weights - delta_tile[:, None])
    return tl.dot(grad_scores.to(k_tile.dtype), k_tile, grad_q, input_precision="ieee")


@_kernel
def grad_q_kernel(
    q, k, v, grad_o, lse, delta, grad_q, key_lengths,
    q_b, q_h, q_t, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d, g_b, g_h, g_t, g_d,
    h, n, t, s, scale, left, right,
    D_HEAD: tl.constexpr, D_VALUE: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """One program: the gradient of BLOCK_M queries of one head, from all of their keys."""
    n_tiles = tl.cdiv(t, BLOCK_M)
    first = (n_tiles - 1 - tl.program_id(0) % n_tiles) * BLOCK_M
    row_of_heads = tl.program_id(0) // n_tiles
    batch, head = row_of_heads // h, row_of_heads % h
    rows, columns = first + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    d, dv = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_V)
    rows_ok, d_ok, v_ok = rows < t, d < D_HEAD, dv < D_VALUE
    MASK_D: tl.constexpr = D_HEAD != BLOCK_D
    MASK_V: tl.constexpr = D_VALUE != BLOCK_V

    row = row_of_heads.to(tl.int64) * t + rows
    q_at = _tile(_places(q, batch, head, q_b, q_h), rows, d, q_t, q_d)
    q_tile = _load(q_at, rows_ok, d_ok, True, MASK_D, UPCAST)
    g_at = _tile(_places(grad_o, batch, head, g_b, g_h), rows, dv, g_t, g_d)
    g_tile = _load(g_at, rows_ok, v_ok, True, MASK_V, UPCAST)
    lse_tile = _lse_of(lse, row, rows_ok)
    delta_tile = tl.load(delta + row, mask=rows_ok, other=0.0)
    k_at = _tile(_places(k, batch, head // n, k_b, k_h), columns, d, k_s, k_d)
    v_at = _tile(_places(v, batch, head // n, v_b, v_h), columns, dv, v_s, v_d)
    sums = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)

    length = _length(key_lengths, batch, s)
    last = min(first + BLOCK_M, t) - 1
    low, all_low, all_high, high = _loops(first, last, s - t, length, left, right, BLOCK_N)
    if left is not None:
        for start in range(low, all_low, BLOCK_N):
            sums = _grad_q_of(
                sums, q_tile, g_tile, lse_tile, delta_tile, k_at, v_at, k_s, v_s, start, rows,
                columns, d_ok, v_ok, s - t, length, scale * LOG2_E, left, right,
                True, MASK_D, MASK_V, UPCAST,
            )  # fmt: skip
    for start in range(all_low, all_high, BLOCK_N):
        sums = _grad_q_of(
            sums, q_tile, g_tile, lse_tile, delta_tile, k_at, v_at, k_s, v_s, start, rows,
            columns, d_ok, v_ok, s - t, length, scale * LOG2_E, left, right,
            False, MASK_D, MASK_V, UPCAST,
        )  # fmt: skip
    for start in range(all_high, high, BLOCK_N):
        sums = _grad_q_of(
            sums, q_tile, g_tile, lse_tile, delta_tile, k_at, v_at, k_s, v_s, start, rows,
            columns, d_ok, v_ok, s - t, length, scale * LOG2_E, left, right,
            True, MASK_D, MASK_V, UPCAST,
        )  # fmt: skip
    _store(_tile(grad_q, row, d, D_HEAD, 1), sums * scale, rows_ok, d_ok)


@_jit
def _grad_kv_of(
    grad_k, grad_v, k_tile, v_tile, q_at, g_at, q_t, g_t, lse, delta, row, start, rows, keys,
    d_ok, v_ok, t, shift, length, scale, left, right,
    MASKED: tl.constexpr, MASK_D: tl.constexpr, MASK_V: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """What a tile of queries adds to the gradients of a tile of keys and values.

    Scores stand on their side here, keys by queries, as the products want them.
    """
    rows_ok = start + rows < t
    q_tile = _load(q_at + tl.cast(start, tl.int64) * q_t, rows_ok, d_ok, True, MASK_D, UPCAST)
    g_tile = _load(g_at + tl.cast(start, tl.int64) * g_t, rows_ok, v_ok, True, MASK_V, UPCAST)
    lse_tile = _lse_of(lse, row + start + rows, rows_ok)  # +inf past the last query: no weight
    delta_tile = tl.load(delta + row + start + rows, mask=rows_ok, other=0.0)
    scores = tl.dot(k_tile, tl.trans(q_tile), input_precision="ieee") * scale
    if MASKED:
        kept = keep((start + rows)[None, :], keys[:, None], shift, length, left, right)
        scores = tl.where(kept, scores, -INFINITY)
    weights = tl.exp2(scores - lse_tile[None, :])
    grad_v = tl.dot(weights.to(g_tile.dtype), g_tile, grad_v, input_precision="ieee")
    grad_weights = tl.dot(v_tile, tl.trans(g_tile), input_precision="ieee")
    grad_scores = weights * (grad_weights - delta_tile[None, :])
    grad_k = tl.dot(grad_scores.to(q_tile.dtype), q_tile, grad_k, input_precision="ieee")
    return grad_k, grad_v


@_kernel
def grad_kv_kernel(
    q, k, v, grad_o, lse, delta, grad_k, grad_v, key_lengths,
    q_b, q_h, q_t, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d, g_b, g_h, g_t, g_d,
    h, n, t, s, scale, left, right,
    D_HEAD: tl.constexpr, D_VALUE: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """One program: the gradients of BLOCK_N keys and values of one head.

    It walks over all queries of all `n` heads that share them, so nobody else adds to them.
    """
    n_tiles = tl.cdiv(s, BLOCK_N)
    first = tl.program_id(0) % n_tiles * BLOCK_N
    row_of_heads = tl.program_id(0) // n_tiles
    batch, kv_head = row_of_heads // (h // n), row_of_heads % (h // n)
    rows, keys = tl.arange(0, BLOCK_M), first + tl.arange(0, BLOCK_N)
    d, dv = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_V)
    d_ok, v_ok = d < D_HEAD, dv < D_VALUE
    MASK_D: tl.constexpr = D_HEAD != BLOCK_D
    MASK_V: tl.constexpr = D_VALUE != BLOCK_V

    length = _length(key_lengths, batch, s)
    k_at = _tile(_places(k, batch, kv_head, k_b, k_h), keys, d, k_s, k_d)
    v_at = _tile(_places(v, batch, kv_head, v_b, v_h), keys, dv, v_s, v_d)
    k_tile = _load(k_at, keys < length, d_ok, True, MASK_D, UPCAST)
    v_tile = _load(v_at, keys < length, v_ok, True, MASK_V, UPCAST)
    k_sums = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    v_sums = tl.zeros([BLOCK_N, BLOCK_V], tl.float32)

    last = min(first + BLOCK_N, s) - 1
    low, all_low, _, high = _loops(first, last, t - s, t, right, left, BLOCK_M)
    high = tl.where(first < length, high, low)  # a tile of padding: nobody sees it
    # One loop with a mask and one without, not three: that would need more registers than there
    # are. A window on the left, or keys past the end in the tile, and everything goes the slow way.
    if left is not None:
        all_low = high
    all_low = tl.where(first + BLOCK_N <= length, min(all_low, high), high)
    for member in range(0, n):
        head = kv_head * n + member
        row = (batch * h + head).to(tl.int64) * t
        q_at = _tile(_places(q, batch, head, q_b, q_h), rows, d, q_t, q_d)
        g_at = _tile(_places(grad_o, batch, head, g_b, g_h), rows, dv, g_t, g_d)
        for start in range(low, all_low, BLOCK_M):
            k_sums, v_sums = _grad_kv_of(
                k_sums, v_sums, k_tile, v_tile, q_at, g_at, q_t, g_t, lse, delta, row, start, rows,
                keys, d_ok, v_ok, t, s - t, length, scale * LOG2_E, left, right,
                True, MASK_D, MASK_V, UPCAST,
            )  # fmt: skip
        for start in range(all_low, high, BLOCK_M):
            k_sums, v_sums = _grad_kv_of(
                k_sums, v_sums, k_tile, v_tile, q_at, g_at, q_t, g_t, lse, delta, row, start, rows,
                keys, d_ok, v_ok, t, s - t, length, scale * LOG2_E, left, right,
                False, MASK_D, MASK_V, UPCAST,
            )  # fmt: skip
    key = row_of_heads.to(tl.int64) * s + keys
    _store(_tile(grad_k, key, d, D_HEAD, 1), k_sums * scale, keys < s, d_ok)
    _store(_tile(grad_v, key, dv, D_VALUE, 1), v_sums, keys < s, v_ok)
