from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close as close

from plainformer.attention.dot_product import dot_product_attention
from plainformer.attention.grouped_query import GroupedQueryAttention
from plainformer.attention.latent import LatentAttention
from plainformer.attention.local import local_attention
from plainformer.cache.contiguous import ContiguousCache
from plainformer.cache.rolling import RollingCache
from plainformer.masks import window_mask
from plainformer.positions.alibi import alibi_bias, alibi_slopes
from plainformer.positions.rotary import Rotary, rotate_half_split
from plainformer.positions.sinusoidal import frequencies
from plainformer.seeding import generator

# b, g, window, d_head, d_value = 3, 2, 5, 7, 11; nineteen tokens: the ring goes round thrice.
B, G, W, D, DV, S = 3, 2, 5, 7, 11, 19
EXACT = {"dtype": torch.float64}


@pytest.fixture
def qkv():
    g = generator(0)
    return [torch.randn(B, G, S, width, generator=g, **EXACT) for width in (D, D, DV)]


def empty(window=W, rows=B, **options) -> RollingCache:
    return RollingCache(rows, G, window, D, DV, **{**EXACT, **options})


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


def whole(q, k, v, window=W):
    return dot_product_attention(q, k, v, window_mask(q.shape[-2], left=window - 1))


def tokens(*numbers):
    return torch.tensor(numbers, dtype=torch.float32).view(1, 1, -1, 1)


def test_by_hand_the_fourth_token_takes_the_place_of_the_first():
    cache = RollingCache(1, 1, 3, 1)
    for number in (10, 11, 12):
        k, v = cache.append(tokens(number), tokens(-number))
    assert (k.flatten().tolist(), v.flatten().tolist()) == ([10, 11, 12], [-10, -11, -12])
    positions = cache.positions(1)
    k, v = cache.append(tokens(13), tokens(-13))
    assert (k.flatten().tolist(), v.flatten().tolist()) == ([13, 11, 12], [-13, -11, -12])
    assert positions.tolist() == [[3]]
    assert cache.mask(positions).tolist() == [[[True, True, True]]]
    assert cache.relative_positions(positions).tolist() == [[[0, -2, -1]]]
    assert (cache.lengths.tolist(), cache.window) == ([4], 3)


def test_by_hand_a_chunk_whose_early_tokens_see_what_its_late_ones_push_out():
    cache = RollingCache(1, 1, 2, 1)
    cache.append(tokens(10, 11), tokens(10, 11))
    positions = cache.positions(3)
    k, _ = cache.append(tokens(12, 13, 14), tokens(12, 13, 14))
    assert k.flatten().tolist() == [10, 11, 12, 13, 14]
    assert cache.mask(positions).int().tolist() == [
        [[0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]
    ]
    k, _ = cache.append(tokens(15), tokens(15))
    assert k.flatten().tolist() == [14, 15]  # 15 stands at place 5 mod 2


CUTS = {
    "token by token": list(range(1, S + 1)),
    "a short prompt": [3, *range(4, S + 1)],
    "a prompt of the window": [5, *range(6, S + 1)],
    "a prompt longer than the window": [7, *range(8, S + 1)],
    "a prompt of many windows": [17, 18, 19],
    "chunks": [2, 6, 9, 15, 16, 19],
    "chunks of the window and longer": [5, 10, 17, 19],
    "at once": [S],
}


@pytest.mark.parametrize("window", [1, 2, 5, 18, 19, 23])
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_pieces_give_what_the_whole_gives(cuts, window, qkv):
    close(decoded(empty(window), *qkv, cuts), whole(*qkv, window))


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_a_window_that_is_never_full_is_the_contiguous_cache(cuts, qkv):
    ours, theirs, start = empty(S), ContiguousCache(B, G, S, D, DV, **EXACT), 0
    for stop in cuts:
        positions = ours.positions(stop - start)
        assert torch.equal(positions, theirs.positions(stop - start))
        new = [x[:, :, start:stop] for x in qkv[1:]]
        got, want = ours.append(*new), theirs.append(*new)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
        assert torch.equal(ours.mask(positions), theirs.mask(positions))
        assert torch.equal(ours.relative_positions(positions), theirs.relative_positions(positions))
        start = stop


def test_agrees_with_local_attention(qkv):
    close(decoded(empty(), *qkv, CUTS["chunks"]), local_attention(*qkv, left=W - 1))


@pytest.mark.parametrize("prompt", [3, 11, 17])
def test_a_prompt_read_by_local_attention_and_appended_at_once_goes_on(prompt, qkv):
    cache, want = empty(), whole(*qkv)
    cache.append(*(x[:, :, :prompt] for x in qkv[1:]))
    rest = decoded(cache, *(x[:, :, prompt:] for x in qkv), range(1, S - prompt + 1))
    close(rest, want[:, :, prompt:])


def test_keeps_what_the_window_layer_of_the_transformers_library_keeps(qkv):
    """Theirs moves the tokens instead of turning the ring: the same ones in another order."""
    from transformers.cache_utils import DynamicSlidingWindowLayer

    ours, theirs = empty(), DynamicSlidingWindowLayer(sliding_window=W)
    _, k, v = qkv
    for i in range(S):
        new = k[:, :, i : i + 1], v[:, :, i : i + 1]
        got, want = ours.append(*new), theirs.update(*new)
        for a, b in zip(got, want, strict=True):
            # Theirs holds one token less than the window between calls, and gives all of them.
            assert a.shape == b.shape
            close(a.sort(dim=2).values, b.sort(dim=2).values, rtol=0, atol=0)


@given(
    window=st.integers(1, 7),
    counts=st.lists(st.lists(st.integers(0, 9), min_size=B, max_size=B), min_size=1, max_size=6),
    wide=st.integers(0, 3),
)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_rows_of_different_length_each_give_what_they_give_alone(window, counts, wide):
    """Each chunk takes its own count from each row, the rest is padding: of infinities."""
    g = generator(0)
    q, k, v = (torch.randn(B, G, 9 * len(counts), n, generator=g, **EXACT) for n in (D, D, DV))
    alone, cache, taken = whole(q, k, v, window), empty(window), [0] * B
    for step in counts:
        t = max(1, *step) + wide
        pieces = [
            torch.stack(
                [
                    torch.nn.functional.pad(
                        x[b, :, taken[b] : taken[b] + step[b]], (0, 0, 0, t - step[b]), value=fill
                    )
                    for b in range(B)
                ]
            )
            for x, fill in ((q, 1.0), (k, torch.inf), (v, torch.inf))
        ]
        positions = cache.positions(t)
        keys, values = cache.append(*pieces[1:], torch.tensor(step))
        out = dot_product_attention(pieces[0], keys, values, cache.mask(positions)[:, None])
        for b in range(B):
            want = alone[b, :, taken[b] : taken[b] + step[b]]
            close(out[b, :, : step[b]], want)
            taken[b] += step[b]
        assert out.isfinite().all()
        assert cache.lengths.tolist() == taken


ROTARY = Rotary(frequencies=frequencies(4), rotate=rotate_half_split)
SCHEMES = {
    "no positions": {},
    "rotary": {"rotary": ROTARY},
    "alibi": {"position_bias": partial(alibi_bias, slopes=alibi_slopes(6))},
}


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_grouped_query_attention_decodes_through_it(scheme, cuts):
    """Keys are turned before they are kept, and stay as they are when their place moves on."""
    attention = GroupedQueryAttention(24, 6, 2, **SCHEMES[scheme]).double()
    x = torch.randn(B, S, 24, generator=generator(1), **EXACT)
    cache = RollingCache(B, 2, W, 4, **EXACT)
    with torch.no_grad():
        want, start, outputs = attention(x, window_mask(S, left=W - 1)), 0, []
        for stop in cuts:
            outputs.append(attention(x[:, start:stop], cache=cache))
            start = stop
    close(torch.cat(outputs, dim=1), want)
    assert scheme == "no positions" or not torch.allclose(
        want, GroupedQueryAttention.forward(_without(attention), x, window_mask(S, left=W - 1))
    )


def _without(attention):
    """The same weights with no positions: to see that the scheme makes a difference."""
    plain = GroupedQueryAttention(24, 6, 2).double()
    plain.load_state_dict(attention.state_dict(), strict=False)
    return plain.requires_grad_(False)


def test_latent_attention_decodes_through_it():
    attention = LatentAttention(24, 3, d_head=5, d_rope=4, d_latent=7).double()
    x = torch.randn(B, S, 24, generator=generator(1), **EXACT)
    with torch.no_grad():
        want = attention(x, window_mask(S, left=W - 1))
        for forward in (attention, attention.absorbed):
            cache = RollingCache(B, 1, W, 7, 4, **EXACT)
            pieces = [forward(x[:, i:j], cache=cache) for i, j in [(0, 3), (3, 11), (11, 12)]]
            close(torch.cat(pieces, dim=1), want[:, :12])


def test_memory_is_that_of_the_window_however_long_the_text(qkv):
    cache = empty()
    bytes_at_first = cache.nbytes
    assert bytes_at_first == 8 * B * G * W * (D + DV)
    places = set()
    for i in range(7 * W):
        i %= S
        k, v = cache.append(qkv[1][:, :, i : i + 1], qkv[2][:, :, i : i + 1])
        places.add((k.data_ptr(), v.data_ptr()))
        assert k.shape[2] <= W
        assert k.untyped_storage().nbytes() + v.untyped_storage().nbytes() == bytes_at_first
    assert len(places) == 1  # one token is given the ring, and nothing is moved
    assert cache.nbytes == bytes_at_first
    assert cache.lengths.tolist() == [7 * W] * B


def test_a_chunk_is_given_at_most_the_window_and_itself(qkv):
    cache = empty()
    decoded(cache, *(x[:, :, :7] for x in qkv), [7])
    k, _ = cache.append(*(x[:, :, 7:10] for x in qkv[1:]))
    assert k.shape[2] == W + 3


def test_mistral_keeps_4096_tokens_of_32768():
    """32 layers, 8 heads of width 128, two bytes: 0.5 GiB, where all tokens would take 4."""
    with torch.device("meta"):
        ring = RollingCache(1, 8, 4096, 128, dtype=torch.bfloat16)
        everything = ContiguousCache(1, 8, 32_768, 128, dtype=torch.bfloat16)
    assert (32 * ring.nbytes, 32 * everything.nbytes) == (2**29, 2**32)


def test_a_reset_cache_is_as_good_as_new(qkv):
    cache = empty()
    decoded(cache, *(x * 3 for x in qkv[:2]), qkv[2] * torch.inf, [4, 19])
    cache.reset()
    assert cache.lengths.tolist() == [0] * B
    close(decoded(cache, *qkv, [3, 4, 11, 19]), whole(*qkv))


def test_what_was_forgotten_cannot_poison_a_shorter_row(qkv):
    """A weight of 0 times a left-over infinity would be NaN."""
    cache = empty()
    cache.append(*(x * torch.inf for x in qkv[1:]))
    cache.reset()
    for t, counts in [(4, [4, 2, 0]), (1, [1, 0, 1]), (3, [3, 1, 0])]:
        positions = cache.positions(t)
        k, v = cache.append(*(x[:, :, :t] for x in qkv[1:]), torch.tensor(counts))
        mask = cache.mask(positions)[:, None]
        assert dot_product_attention(qkv[0][:, :, :t], k, v, mask).isfinite().all()


@pytest.mark.parametrize("cuts", [[1, 2, 3, 4, 5, 6, 7, 8], [2, 8], [8]])
def test_one_row_can_be_reset_while_the_others_go_on(cuts, qkv):
    cache = empty()
    decoded(cache, *(x[:, :, :11] for x in qkv), [11])
    cache.reset(torch.tensor([1]))
    assert cache.lengths.tolist() == [11, 0, 11]
    # Row 1 starts again, with its first tokens, where the others take those from the twelfth on.
    new = [torch.stack([x[0, :, 11:], x[1, :, :8], x[2, :, 11:]]) for x in qkv]
    out, want = decoded(cache, *new, cuts), whole(*qkv)
    close(out[0], want[0, :, 11:])
    close(out[1], want[1, :, :8])
    close(out[2], want[2, :, 11:])


def test_a_mask_after_a_reset_shows_nothing(qkv):
    cache = empty()
    cache.append(*(x[:, :, :7] for x in qkv[1:]))
    cache.reset(torch.tensor([0, 2]))
    assert cache.mask(torch.tensor([[6]] * B)).sum(dim=(1, 2)).tolist() == [0, W, 0]


def test_before_anything_is_kept_the_mask_is_empty_of_keys_to_see():
    assert not empty().mask(empty().positions(3)).any()


@pytest.mark.parametrize("before", [0, 7])
def test_nobody_looks_at_padding_not_even_padding(before, qkv):
    cache = empty()
    cache.append(*(x[:, :, :before] for x in qkv[1:]))
    positions = cache.positions(4)
    cache.append(*(x[:, :, :4] for x in qkv[1:]), torch.tensor([4, 1, 0]))
    mask = cache.mask(positions)
    assert mask.shape == (B, 4, min(before, W) + 4)
    assert mask[:, :, -4:].any(dim=1).tolist() == [[True] * 4, [True] + [False] * 3, [False] * 4]


def test_nothing_new_changes_nothing(qkv):
    cache = empty()
    before = [x.clone() for x in cache.append(*(x[:, :, :1] for x in qkv[1:]))]
    nothing = torch.zeros(B, dtype=torch.long)
    after = cache.append(*(x[:, :, 5:6] for x in qkv[1:]), nothing)
    assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
    assert cache.lengths.tolist() == [1] * B


def test_what_was_refused_left_no_trace(qkv, no_shape_hook):
    q, k, v = qkv
    cache = empty()
    decoded(cache, *(x[:, :, :7] for x in qkv), [7])
    new = k[:, :, 7:9], v[:, :, 7:9]
    for wrong in [
        (new[0].float(), new[1]),
        (new[0], new[1].float()),
        (new[0][:1], new[1][:1]),
        (new[0], new[1][..., :3]),
        (new[0].clone().requires_grad_(), new[1]),
        (*new, torch.tensor([1, 2, 3])),
        (*new, torch.tensor([1, -1, 2])),
    ]:
        with pytest.raises(ValueError, match=r"must (have|be)|requires gradients"):
            cache.append(*wrong)
        assert cache.lengths.tolist() == [7] * B
    close(decoded(cache, *(x[:, :, 7:] for x in (q, k, v)), [2, 12]), whole(*qkv)[:, :, 7:])


@pytest.mark.parametrize("window", [0, -3])
def test_a_window_below_one_is_refused(window):
    says = rf"window must be at least 1, got {window}; it counts the query itself, so 1"
    with pytest.raises(ValueError, match=says):
        empty(window)


@pytest.mark.parametrize("which", [0, 1, 3, 4])
def test_a_size_below_one_is_refused(which):
    sizes = [B, G, W, D, DV]
    sizes[which] = 0
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        RollingCache(*sizes)


def test_a_dtype_of_whole_numbers_is_refused():
    with pytest.raises(ValueError, match=r"must hold fractions, got torch.int8"):
        empty(dtype=torch.int8)


def test_unlike_the_contiguous_cache_it_never_overflows(qkv):
    cache = empty()
    for _ in range(5):
        cache.append(*qkv[1:])
    assert cache.lengths.tolist() == [5 * S] * B
