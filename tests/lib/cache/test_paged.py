import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from torch.testing import assert_close as close

from plainformer.attention.dot_product import dot_product_attention
from plainformer.cache.paged import PagedCache, PagePool
from plainformer.masks import causal_mask
from plainformer.positions.rotary import rotate_half_split
from plainformer.positions.sinusoidal import frequencies
from plainformer.seeding import generator

# n_pages, page_size, g, d_head, d_value = 11, 3, 2, 4, 5
PAGES, SIZE, G, D, DV = 11, 3, 2, 4, 5


def made(n_pages=PAGES, page_size=SIZE, **options):
    return PagedCache(PagePool(n_pages, page_size, G, D, DV, **options))


def kv(t, seed=0):
    g = generator(seed)
    return torch.randn(G, t, D, generator=g), torch.randn(G, t, DV, generator=g)


def held(cache, seq):
    return [x.clone() for x in cache.gather(seq)]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_by_hand_pages_are_taken_one_by_one():
    cache = made()
    seq = cache.add()
    assert (cache.block_table(seq), cache.length(seq), cache.pool.n_used) == ([], 0, 0)
    cache.append(seq, *kv(2))
    assert (len(cache.block_table(seq)), cache.n_reserved, cache.n_wasted) == (1, 3, 1)
    cache.append(seq, *kv(1))
    assert (len(cache.block_table(seq)), cache.n_reserved, cache.n_wasted) == (1, 3, 0)
    cache.append(seq, *kv(5))
    assert (len(cache.block_table(seq)), cache.n_reserved, cache.n_wasted) == (3, 9, 1)
    assert (cache.pool.n_used, cache.pool.n_free, cache.length(seq)) == (3, 8, 8)


def test_by_hand_a_fork_copies_the_page_that_it_writes_to_and_no_other():
    cache = made()
    one = cache.add()
    cache.append(one, *kv(5))
    first, second = cache.block_table(one)
    two = cache.fork(one)
    assert cache.block_table(two) == [first, second]
    assert cache.pool.n_used == 2
    assert [cache.pool.references(page) for page in (first, second)] == [2, 2]
    cache.append(two, *kv(1, seed=1))
    assert cache.block_table(one) == [first, second]
    assert cache.block_table(two)[0] == first
    assert cache.block_table(two)[1] not in (first, second)
    assert [cache.pool.references(page) for page in (first, second)] == [2, 1]
    cache.append(one, *kv(1, seed=2))  # nobody shares it any more: no copy
    assert cache.block_table(one) == [first, second]
    assert cache.pool.n_used == 3


def test_by_hand_a_fork_of_full_pages_copies_nothing():
    cache = made()
    one = cache.add()
    cache.append(one, *kv(6))
    two = cache.fork(one)
    cache.append(two, *kv(1))
    assert cache.block_table(two)[:2] == cache.block_table(one)
    assert cache.pool.n_used == 3


def test_the_numbers_of_the_course():
    """Pages of 16: 100 tokens waste 12 places, 1000 waste 8, and bytes per token are the same."""
    for length, pages, wasted in [(100, 7, 12), (1000, 63, 8)]:
        cache = PagedCache(PagePool(64, 16, 1, 1))
        seq = cache.add()
        cache.append(seq, torch.zeros(1, length, 1), torch.zeros(1, length, 1))
        assert (cache.pool.n_used, cache.n_wasted) == (pages, wasted)
    assert PagePool(64, 16, 8, 128, dtype=torch.bfloat16).nbytes == 64 * 16 * 2 * 8 * 128 * 2


@pytest.mark.parametrize("page_size", [1, 2, 3, 7, 23])
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("cuts", [range(1, 18), [17], [5, 6, 7, 17], [3, 6, 9, 17], [2, 13, 17]])
def test_pieces_give_what_the_whole_gives(cuts, rotary, page_size):
    """Two texts take turns, so that their pages lie between each other."""
    texts = [(torch.randn(G, 17, D, generator=generator(5 + i)), *kv(17, seed=i)) for i in (0, 1)]
    freqs = frequencies(D)
    if rotary:
        places = torch.arange(17)
        texts = [(*(rotate_half_split(x, places, freqs) for x in (q, k)), v) for q, k, v in texts]
    cache, start = made(40, page_size), 0
    seqs = [cache.add(), cache.add()]
    for stop in cuts:
        for seq, (q, k, v) in zip(seqs, texts, strict=True):
            cache.append(seq, k[:, start:stop], v[:, start:stop])
            out = dot_product_attention(
                q[:, start:stop], *cache.gather(seq), causal_mask(stop - start, stop)
            )
            close(out, dot_product_attention(q, k, v, causal_mask(17))[:, start:stop])
        start = stop


def test_three_answers_share_one_prompt():
    cache, prompt = made(), kv(7)
    origin = cache.add()
    cache.append(origin, *prompt)
    forks = [cache.fork(origin) for _ in range(3)]
    assert cache.pool.n_used == 3
    assert (cache.n_reserved, cache.n_wasted) == (9, 2)
    for i, seq in enumerate(forks):
        cache.append(seq, *kv(4, seed=10 + i))
    # Two shared, and the last of the origin; each fork copies that one and takes one more.
    assert cache.pool.n_used == 3 + 3 * 2
    assert same(held(cache, origin), prompt)
    for i, seq in enumerate(forks):
        want = [torch.cat(pair, dim=1) for pair in zip(prompt, kv(4, seed=10 + i), strict=True)]
        assert same(held(cache, seq), want)
    cache.free(origin)
    assert cache.pool.n_used == 8
    for seq in forks:
        cache.free(seq)
    assert (cache.pool.n_free, cache.sequences, cache.n_reserved) == (PAGES, [], 0)


def test_the_last_user_of_a_shared_page_writes_in_place():
    cache = made()
    one = cache.add()
    cache.append(one, *kv(4))
    table = cache.block_table(one)
    two = cache.fork(one)
    cache.free(one)
    cache.append(two, *kv(1, seed=1))
    assert cache.block_table(two) == table
    assert cache.pool.n_used == 2


def test_less_than_a_page_is_wasted_by_each_sequence():
    cache = made(40)
    for length in range(1, 9):
        cache.append(cache.add(), *kv(length))
    assert cache.n_wasted == sum(-length % SIZE for length in range(1, 9))
    assert cache.n_reserved == cache.n_wasted + sum(range(1, 9)) == cache.pool.n_used * SIZE


@pytest.mark.parametrize("tokens", [5, 6, 7, 100])
def test_running_out_of_pages_loses_nothing(tokens):
    """Of five pages of three, four are used; the last of them has two free places."""
    cache = made(5)
    one, two = cache.add(), cache.add()
    cache.append(one, *kv(8))
    cache.append(two, *kv(1, seed=1))
    before = held(cache, one), held(cache, two), cache.block_table(one), cache.block_table(two)
    missing = -(-(1 + tokens) // 3) - 1
    if missing > 1:
        says = rf"sequence 1 needs {missing} more pages for {tokens} tokens, but of 5 pages 1 are"
        with pytest.raises(ValueError, match=says):
            cache.append(two, *kv(tokens))
        assert cache.length(two) == 1
        assert cache.pool.n_free == 1
    now = held(cache, one), held(cache, two), cache.block_table(one), cache.block_table(two)
    assert same(now[0], before[0])
    assert same(now[1], before[1])
    assert now[2:] == before[2:]
    cache.append(two, *kv(5, seed=2))  # what does fit still fits
    assert (cache.length(two), cache.pool.n_free) == (6, 0)


def test_a_copy_needs_a_page_as_well():
    cache = made(2)
    one = cache.add()
    cache.append(one, *kv(4))
    two = cache.fork(one)
    with pytest.raises(ValueError, match="needs 1 more pages for 1 tokens, but of 2 pages 0 are"):
        cache.append(two, *kv(1))
    assert cache.block_table(two) == cache.block_table(one)
    assert same(held(cache, two), kv(4))
    cache.free(one)
    cache.append(two, *kv(1, seed=1))  # now it is nobody else's
    assert cache.length(two) == 5


def test_no_tokens_need_no_page_and_no_copy():
    cache = made(2)
    one = cache.add()
    cache.append(one, *kv(0))
    assert cache.gather(one)[0].shape == (G, 0, D)
    assert cache.gather(one)[1].shape == (G, 0, DV)
    cache.append(one, *kv(4))
    two = cache.fork(one)
    cache.append(two, *kv(0))
    assert cache.block_table(two) == cache.block_table(one)


def test_what_is_gathered_is_a_copy():
    cache = made()
    seq = cache.add()
    cache.append(seq, *kv(4))
    for x in cache.gather(seq):
        x.fill_(torch.nan)
    cache.block_table(seq).clear()
    assert same(held(cache, seq), kv(4))


def test_two_caches_share_one_pool():
    pool = PagePool(4, SIZE, G, D, DV)
    one, two = PagedCache(pool), PagedCache(pool)
    a, b = one.add(), two.add()
    one.append(a, *kv(4))
    two.append(b, *kv(6, seed=1))
    assert pool.n_free == 0
    assert (one.n_reserved, two.n_reserved) == (6, 6)
    assert not set(one.block_table(a)) & set(two.block_table(b))
    one.free(a)
    assert pool.n_free == 2
    assert same(held(two, b), kv(6, seed=1))


class AgainstADictionary(RuleBasedStateMachine):
    """Any history of calls, beside a model that keeps every text by itself."""

    @initialize(n_pages=st.integers(1, 9), page_size=st.integers(1, 4))
    def start(self, n_pages, page_size):
        self.cache = PagedCache(PagePool(n_pages, page_size, 1, 1))
        self.texts: dict[int, list[float]] = {}
        self.given = set()
        self.counter = 0.0

    def some(self, data):
        return data.draw(st.sampled_from(sorted(self.texts)))

    def enter(self, seq, text):
        assert seq not in self.given
        self.given.add(seq)
        self.texts[seq] = text

    @rule()
    def add(self):
        self.enter(self.cache.add(), [])

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def fork(self, data):
        seq = self.some(data)
        free = self.cache.pool.n_free
        self.enter(self.cache.fork(seq), list(self.texts[seq]))
        assert self.cache.pool.n_free == free

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def free(self, data):
        seq = self.some(data)
        del self.texts[seq]
        self.cache.free(seq)

    @precondition(lambda self: self.texts)
    @rule(data=st.data(), t=st.integers(0, 9))
    def append(self, data, t):
        seq, pool = self.some(data), self.cache.pool
        new = [self.counter + i for i in range(t)]
        self.counter += t
        x = torch.tensor(new).view(1, t, 1)
        table, stop = self.cache.block_table(seq), len(self.texts[seq]) + t
        shared = t and len(self.texts[seq]) % pool.page_size and pool.references(table[-1]) > 1
        missing = -(-stop // pool.page_size) - len(table) + bool(shared)
        if missing > pool.n_free:
            with pytest.raises(ValueError, match="free a sequence"):
                self.cache.append(seq, x, -x)
            assert self.cache.block_table(seq) == table
        else:
            self.cache.append(seq, x, -x)
            self.texts[seq] += new

    @invariant()
    def everybody_has_their_text(self):
        for seq, text in self.texts.items():
            k, v = self.cache.gather(seq)
            assert k.flatten().tolist() == text
            assert v.flatten().tolist() == [-x for x in text]
            assert self.cache.length(seq) == len(text)
            pages = -(-len(text) // self.cache.pool.page_size)
            assert len(self.cache.block_table(seq)) == pages
        assert self.cache.sequences == list(self.texts)

    @invariant()
    def the_books_balance(self):
        pool = self.cache.pool
        tables = [self.cache.block_table(seq) for seq in self.texts]
        users = [sum(table.count(page) for table in tables) for page in range(pool.n_pages)]
        assert [pool.references(page) for page in range(pool.n_pages)] == users
        assert pool.n_used == sum(n > 0 for n in users)
        assert pool.n_free + pool.n_used == pool.n_pages
        assert self.cache.n_reserved == pool.n_used * pool.page_size
        kept = {x for text in self.texts.values() for x in text}
        copies = self.cache.n_reserved - self.cache.n_wasted - len(kept)
        assert copies >= 0  # what was copied on a write is held more than once

    def teardown(self):
        if hasattr(self, "cache"):
            for seq in list(self.texts):
                self.cache.free(seq)
            assert self.cache.pool.n_free == self.cache.pool.n_pages
            taken = {self.cache.pool.take() for _ in range(self.cache.pool.n_pages)}
            assert taken == set(range(self.cache.pool.n_pages))


TestAgainstADictionary = AgainstADictionary.TestCase
TestAgainstADictionary.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True
)


@pytest.mark.parametrize("call", ["length", "block_table", "gather", "fork", "free"])
def test_a_sequence_that_is_not_there_is_refused(call):
    cache = made()
    kept, gone = cache.add(), cache.add()
    cache.free(gone)
    for seq in (gone, 17):
        says = rf"no sequence {seq}, only \[{kept}\]; it was never added, or is freed"
        with pytest.raises(ValueError, match=says):
            getattr(cache, call)(seq)
    with pytest.raises(ValueError, match="no sequence 1"):
        cache.append(gone, *kv(1))


def test_a_number_is_not_given_twice():
    cache = made()
    one = cache.add()
    cache.free(one)
    assert cache.add() != one


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("size", [0, -3])
def test_a_size_below_one_is_refused(which, size):
    sizes = [PAGES, SIZE, G, D, DV]
    sizes[which] = size
    name = ["n_pages", "page_size", "n_kv_heads", "d_head", "d_value"][which]
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {size}"):
        PagePool(*sizes)


def test_a_dtype_of_whole_numbers_is_refused():
    with pytest.raises(ValueError, match=r"must hold fractions, got torch.int8; use that of"):
        made(dtype=torch.int8)


@pytest.mark.parametrize(
    ("k", "v", "says"),
    [
        ((1, 2, D), (1, 2, DV), r"^k must .* = \(2, t, 4\) of this pool.* got \(1, 2, 4\)"),
        ((G, 2, 1), (G, 2, DV), "^k must have the shape"),
        ((G, 2, D), (G, 2, D), "^v must have the shape"),
        ((G, 2, D), (G, 1, DV), "^v must have the shape"),
    ],
)
def test_tensors_of_another_shape_are_refused_and_nothing_is_kept(k, v, says, no_shape_hook):
    cache = made()
    seq = cache.add()
    cache.append(seq, *kv(3))
    with pytest.raises(ValueError, match=says):
        cache.append(seq, torch.zeros(k), torch.zeros(v))
    assert same(held(cache, seq), kv(3))
    assert cache.pool.n_used == 1


def test_tensors_of_another_dtype_are_refused():
    cache = made()
    says = r"of the pool, torch.float32, got torch.float64; make the pool with dtype=torch.float64"
    with pytest.raises(ValueError, match=says):
        cache.append(cache.add(), *(x.double() for x in kv(2)))
    assert cache.pool.n_used == 0


def test_gradients_are_refused_and_no_grad_helps():
    cache = made()
    seq = cache.add()
    k, v = kv(2)[0].requires_grad_(), kv(2)[1]
    with pytest.raises(ValueError, match="for inference, but k requires gradients; wrap"):
        cache.append(seq, k, v)
    with torch.no_grad():
        cache.append(seq, k, v)
    assert not cache.gather(seq)[0].requires_grad


def test_the_pool_keeps_its_books():
    pool = PagePool(2, 3, 1, 1)
    page = pool.take()
    pool.share(page)
    pool.release(page)
    assert (pool.references(page), pool.n_free) == (1, 1)
    pool.release(page)
    assert (pool.references(page), pool.n_free) == (0, 2)
    for call in (pool.share, pool.release):
        with pytest.raises(ValueError, match=f"page {page} is free, so nobody can share or"):
            call(page)
    assert pool.n_free == 2
    for wrong in (2, -1):
        with pytest.raises(ValueError, match=f"numbered from 0 to 1, got {wrong}; take"):
            pool.references(wrong)
    assert {pool.take(), pool.take()} == {0, 1}
    with pytest.raises(ValueError, match="all 2 pages are in use; free a sequence, or make a"):
        pool.take()
