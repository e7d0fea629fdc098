import pytest
import torch
from jaxtyping import TypeCheckError
from torch.testing import assert_close as close

from plainformer.attention.dot_product import dot_product_attention
from plainformer.cache.contiguous import ContiguousCache
from plainformer.masks import causal_mask
from plainformer.positions.buckets import relative_positions
from plainformer.seeding import generator

# b, g, capacity, d_head, d_value = 3, 2, 17, 5, 7; eleven tokens.
B, G, CAPACITY, D, DV, S = 3, 2, 17, 5, 7, 11


@pytest.fixture
def kv():
    g = generator(0)
    return torch.randn(B, G, S, D, generator=g), torch.randn(B, G, S, DV, generator=g)


@pytest.fixture
def q():
    return torch.randn(B, G, S, D, generator=generator(1))


def empty(**settings) -> ContiguousCache:
    return ContiguousCache(B, G, CAPACITY, D, DV, **settings)


def decoded(cache, q, k, v, cuts):
    """Attention through the cache, the tokens fed in pieces that end at the cuts."""
    outputs, start = [], 0
    for stop in cuts:
        positions = cache.positions(stop - start)
        keys, values = cache.append(k[:, :, start:stop], v[:, :, start:stop])
        mask = cache.mask(positions)[:, None]
        outputs.append(dot_product_attention(q[:, :, start:stop], keys, values, mask))
        start = stop
    return torch.cat(outputs, dim=2)


def test_by_hand_two_tokens_then_one():
    cache = ContiguousCache(1, 1, 4, 1)
    one, two = torch.tensor([[[[1.0], [2.0]]]]), torch.tensor([[[[3.0]]]])
    assert cache.positions(2).tolist() == [[0, 1]]
    k, v = cache.append(one, -one)
    assert k.flatten().tolist() == [1, 2]
    assert cache.positions(1).tolist() == [[2]]
    k, v = cache.append(two, -two)
    assert (k.flatten().tolist(), v.flatten().tolist()) == ([1, 2, 3], [-1, -2, -3])
    assert cache.mask(torch.tensor([[2]])).tolist() == [[[True, True, True]]]
    assert cache.lengths.tolist() == [3]


def test_by_hand_a_mask_of_rows_that_differ():
    cache = ContiguousCache(2, 1, 5, 1)
    new = torch.ones(2, 1, 2, 1)
    cache.append(new, new, torch.tensor([2, 1]))
    positions = cache.positions(2)
    assert positions.tolist() == [[2, 3], [1, 2]]
    cache.append(new, new)
    assert cache.mask(positions).int().tolist() == [
        [[1, 1, 1, 0], [1, 1, 1, 1]],
        [[1, 1, 0, 0], [1, 1, 1, 0]],
    ]


CUTS = {
    "token by token": list(range(1, S + 1)),
    "prefill, then tokens": [5, *range(6, S + 1)],
    "chunked prefill": [3, 8, 10, 11],
    "at once": [S],
}


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_pieces_give_what_the_whole_gives(cuts, q, kv):
    want = dot_product_attention(q, *kv, causal_mask(S))
    close(decoded(empty(), q, *kv, cuts), want)


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_what_is_kept_and_the_masks_are_those_of_the_whole(cuts, kv):
    cache, start = empty(), 0
    for stop in cuts:
        positions = cache.positions(stop - start)
        k, v = cache.append(*(x[:, :, start:stop] for x in kv))
        assert torch.equal(k, kv[0][:, :, :stop])
        assert torch.equal(v, kv[1][:, :, :stop])
        for row in cache.mask(positions):
            assert torch.equal(row, causal_mask(stop - start, stop))
        for row in cache.relative_positions(positions):
            assert torch.equal(row, relative_positions(stop - start, stop))
        start = stop


def test_keeps_what_the_cache_of_the_transformers_library_keeps(kv):
    from transformers import DynamicCache

    ours, theirs, start = empty(), DynamicCache(), 0
    for stop in [4, 5, 11]:
        new = [x[:, :, start:stop] for x in kv]
        got, want = ours.append(*new), theirs.update(*new, layer_idx=0)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
        start = stop


def test_rows_of_different_length_each_give_what_they_give_alone(q, kv):
    """Prompts of 5, 2 and 3 tokens, padded to 5; then chunks of which each row takes its own."""
    k, v = kv
    cache, taken = empty(), torch.zeros(B, dtype=torch.long)
    alone = [dot_product_attention(q[b], k[b], v[b], causal_mask(S)) for b in range(B)]
    for counts in [[5, 2, 3], [1, 1, 1], [0, 4, 2], [1, 0, 1], [3, 3, 3]]:
        t, counts = max(counts), torch.tensor(counts)
        pieces = [
            torch.stack(
                [
                    torch.nn.functional.pad(x[b, :, n : n + c], (0, 0, 0, t - c), value=1e3)
                    for b, (n, c) in enumerate(zip(taken.tolist(), counts.tolist(), strict=True))
                ]
            )
            for x in (q, k, v)
        ]
        positions = cache.positions(t)
        keys, values = cache.append(*pieces[1:], counts)
        out = dot_product_attention(pieces[0], keys, values, cache.mask(positions)[:, None])
        for b in range(B):
            n, c = taken[b].item(), counts[b].item()
            close(out[b, :, :c], alone[b][:, n : n + c])
        taken += counts
        assert torch.equal(cache.lengths, taken)


def test_no_query_ever_sees_padding_or_what_is_not_kept(kv):
    cache = empty()
    cache.append(kv[0][:, :, :5], kv[1][:, :, :5], torch.tensor([5, 0, 3]))
    mask = cache.mask(torch.tensor([[0, 4], [0, 4], [0, 4]]))
    assert mask.sum(-1).tolist() == [[1, 5], [0, 0], [1, 3]]


def test_filling_to_the_last_place_works_and_one_more_is_refused(kv):
    cache = empty()
    cache.append(*kv)
    cache.append(*(x[:, :, :6] for x in kv))
    assert cache.lengths.tolist() == [CAPACITY] * B
    with pytest.raises(ValueError, match=r"capacity=17 .* rows \[0, 1, 2\] would have \[18, 18"):
        cache.append(*(x[:, :, :1] for x in kv))


def test_an_overflow_of_one_row_changes_nothing(kv):
    cache = empty()
    cache.append(*kv)
    before = [x.clone() for x in cache.append(*(x[:, :, :5] for x in kv), torch.tensor([5, 0, 1]))]
    with pytest.raises(ValueError, match=r"rows \[0\] would have \[18\]; make the cache larger"):
        cache.append(*(x[:, :, :2] for x in kv), torch.tensor([2, 2, 2]))
    assert cache.lengths.tolist() == [16, 11, 12]
    nothing = torch.zeros(B, dtype=torch.long)
    after = cache.append(*(x[:, :, :2] for x in kv), nothing)
    assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))


def test_a_reset_cache_is_as_good_as_new(q, kv):
    k, v = kv
    cache = empty()
    decoded(cache, q * 3, k + 1, v * torch.inf, [4, 11])
    cache.reset()
    assert cache.lengths.tolist() == [0, 0, 0]
    close(decoded(cache, q, k, v, [3, 4, 11]), dot_product_attention(q, k, v, causal_mask(S)))


def test_what_was_forgotten_cannot_poison_a_shorter_row(q, kv):
    """A weight of 0 times a left-over infinity would be NaN."""
    cache = empty()
    cache.append(*(x * torch.inf for x in kv))
    cache.reset()
    positions = cache.positions(5)
    k, v = cache.append(*(x[:, :, :5] for x in kv), torch.tensor([5, 2, 3]))
    out = dot_product_attention(q[:, :, :5], k, v, cache.mask(positions)[:, None])
    assert out.isfinite().all()


def test_one_row_can_be_reset_while_the_others_go_on(q, kv):
    k, v = kv
    cache = empty()
    decoded(cache, q[:, :, :4], k[:, :, :4], v[:, :, :4], [4])
    cache.reset(torch.tensor([1]))
    assert cache.lengths.tolist() == [4, 0, 4]
    k[1], v[1], q[1] = (x[1].roll(-4, dims=1) for x in (k, v, q))
    # Row 1 starts again, with the tokens that the others take as their fifth to eleventh.
    positions = cache.positions(7)
    new = [torch.stack([x[0, :, 4:], x[1, :, :7], x[2, :, 4:]]) for x in (q, k, v)]
    keys, values = cache.append(*new[1:])
    out = dot_product_attention(new[0], keys, values, cache.mask(positions)[:, None])
    for b, start in [(0, 4), (1, 0), (2, 4)]:
        n = 7 + start
        want = dot_product_attention(q[b, :, :n], k[b, :, :n], v[b, :, :n], causal_mask(n))
        close(out[b], want[:, start:])


def test_memory_is_laid_out_once_and_counted():
    cache = empty(dtype=torch.bfloat16)
    assert cache.nbytes == 2 * B * G * CAPACITY * (D + DV)
    k, _ = cache.append(
        torch.zeros(B, G, 2, D, dtype=torch.bfloat16),
        torch.zeros(B, G, 2, DV, dtype=torch.bfloat16),
    )
    again, _ = cache.append(
        torch.zeros(B, G, 2, D, dtype=torch.bfloat16),
        torch.zeros(B, G, 2, DV, dtype=torch.bfloat16),
    )
    assert k.data_ptr() == again.data_ptr()
    assert cache.capacity == CAPACITY


def test_llama_3_8b_needs_128_kib_a_token():
    """32 layers, 8 key/value heads of width 128, two bytes a number."""
    assert 32 * ContiguousCache(1, 8, 1, 128, dtype=torch.bfloat16).nbytes == 128 * 1024


def test_lengths_cannot_be_changed_from_outside(kv):
    cache = empty()
    cache.append(*kv)
    cache.lengths.zero_()
    assert cache.lengths.tolist() == [S] * B


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("size", [0, -3])
def test_a_size_below_one_is_refused(which, size):
    sizes = [B, G, CAPACITY, D, DV]
    sizes[which] = size
    with pytest.raises(ValueError, match=f"must be at least 1, got {size}"):
        ContiguousCache(*sizes)


def test_a_dtype_of_whole_numbers_is_refused():
    with pytest.raises(ValueError, match=r"must hold fractions, got torch.int8"):
        empty(dtype=torch.int8)


@pytest.mark.parametrize(
    ("k", "v", "says"),
    [
        ((1, G, 2, D), (1, G, 2, DV), r"^k must .* = \(3, 2, t, 5\)"),  # would broadcast
        ((B, 1, 2, D), (B, 1, 2, DV), "^k must have the shape"),  # would broadcast
        ((B, G, 2, 1), (B, G, 2, DV), "^k must have the shape"),  # would broadcast
        ((B, G, 2, D), (B, G, 2, D), "^v must have the shape"),
        ((B, G, 2, D), (B, G, 3, DV), "^v must have the shape"),
    ],
)
def test_tensors_of_another_shape_are_refused(k, v, says, no_shape_hook):
    with pytest.raises(ValueError, match=says):
        empty().append(torch.zeros(k), torch.zeros(v))


def test_tensors_of_another_dtype_are_refused(kv):
    with pytest.raises(ValueError, match=r"torch.float32, got torch.float64; make the cache with"):
        empty().append(*(x.double() for x in kv))


def test_gradients_are_refused_and_no_grad_helps(kv):
    k, v = kv[0].requires_grad_(), kv[1]
    with pytest.raises(ValueError, match="for inference, but k requires gradients; wrap"):
        empty().append(k, v)
    with torch.no_grad():
        assert not empty().append(k, v)[0].requires_grad


@pytest.mark.parametrize("counts", [[0, 12, 3], [-1, 2, 3]])
def test_counts_that_cannot_be_are_refused(counts, kv):
    with pytest.raises(ValueError, match=r"from 0 to t=11 for each of 3 rows, got \["):
        empty().append(*kv, torch.tensor(counts))


def test_counts_for_other_rows_are_refused(kv, no_shape_hook):
    with pytest.raises(ValueError, match="for each of 3 rows"):
        empty().append(*kv, torch.tensor([1]))


def test_the_shape_hook_refuses_positions_without_rows(kv):
    with pytest.raises(TypeCheckError, match="positions"):
        empty().mask(torch.tensor([1, 2]))
