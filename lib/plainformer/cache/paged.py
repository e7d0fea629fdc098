"""Keys and values kept in pages that are handed out as texts grow, and shared where they agree."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from plainformer.contracts import require_sizes


class PagePool:
    """Memory for one layer in `n_pages` pages of `page_size` tokens, and who uses which.

    Keys and values are in `k` and `v`, page after page, of g heads with `page_size` tokens each. A
    page that was handed out counts those who refer to it; it is free again when nobody does.
    Source: Kwon et al. 2023 (arXiv:2309.06180), sec. 4; their block is our page.
    Raises ValueError when a size is below 1 or `dtype` can hold no fractions.
    """

    def __init__(
        self,
        n_pages: int,
        page_size: int,
        n_kv_heads: int,
        d_head: int,
        d_value: int | None = None,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        d_value = d_head if d_value is None else d_value
        require_sizes(n_pages=n_pages, page_size=page_size, n_kv_heads=n_kv_heads)
        require_sizes(d_head=d_head, d_value=d_value)
        if dtype is not None and not dtype.is_floating_point:
            raise ValueError(
                f"dtype must hold fractions, got {dtype}; use that of the model's weights"
            )
        room = (n_pages, n_kv_heads, page_size)
        self.k = torch.zeros(*room, d_head, dtype=dtype, device=device)
        self.v = torch.zeros(*room, d_value, dtype=dtype, device=device)
        self._references = [0] * n_pages
        self._free = list(reversed(range(n_pages)))  # the last one is handed out next

    @property
    def n_pages(self) -> int:
        """How many pages there are, used or free."""
        return len(self._references)

    @property
    def page_size(self) -> int:
        """How many tokens fit into a page."""
        return self.k.shape[2]

    @property
    def n_free(self) -> int:
        """How many pages nobody uses."""
        return len(self._free)

    @property
    def n_used(self) -> int:
        """How many pages somebody uses, each counted once however many share it."""
        return self.n_pages - self.n_free

    @property
    def nbytes(self) -> int:
        """Bytes laid out for keys and values, used or not."""
        return self.k.nbytes + self.v.nbytes

    def references(self, page: int) -> int:
        """How many sequences use this page."""
        return self._references[self._known(page)]

    def take(self) -> int:
        """Hand out a free page, to one user. Raises ValueError when there is none."""
        if not self._free:
            raise ValueError(
                f"all {self.n_pages} pages are in use; free a sequence, or make a larger pool"
            )
        page = self._free.pop()
        self._references[page] = 1
        return page

    def share(self, page: int) -> None:
        """Note one more user of a page that is in use."""
        self._references[self._used(page)] += 1

    def release(self, page: int) -> None:
        """Note one user less; the last one leaves the page free."""
        self._references[self._used(page)] -= 1
        if not self._references[page]:
            self._free.append(page)

    def _known(self, page: int) -> int:
        if not 0 <= page < self.n_pages:
            raise ValueError(
                f"pages are numbered from 0 to {self.n_pages - 1}, got {page}; "
                f"take() and block_table(seq) give numbers that exist"
            )
        return page

    def _used(self, page: int) -> int:
        if not self.references(page):
            raise ValueError(f"page {page} is free, so nobody can share or release it; take() one")
        return page


class PagedCache:
    """Keys and values of many sequences, each a list of pages of one pool: its block table.

    A sequence takes a page when its last one is full, so less than one page of each is empty. A
    fork shares all pages of its origin, and whoever writes to a shared page copies it first.
    Source: Kwon et al. 2023 (arXiv:2309.06180), sec. 4.2 and 4.4.
    """

    def __init__(self, pool: PagePool):
        self.pool = pool
        self._tables: dict[int, list[int]] = {}
        self._lengths: dict[int, int] = {}
        self._next = 0  # numbers are not used twice, so a stale one is an error and not another's

    @property
    def sequences(self) -> list[int]:
        """The numbers of the sequences that are held, the oldest first."""
        return list(self._tables)

    @property
    def n_reserved(self) -> int:
        """Tokens that fit into the pages in use, each page counted once."""
        return len({page for table in self._tables.values() for page in table}) * self._size

    @property
    def n_wasted(self) -> int:
        """Places in these pages that hold no token."""
        # Those who share a page agree on how much of it is filled: who adds to it copies it first.
        filled = {
            page: min(self._size, self._lengths[seq] - i * self._size)
            for seq, table in self._tables.items()
            for i, page in enumerate(table)
        }
        return self.n_reserved - sum(filled.values())

    def add(self) -> int:
        """Start an empty sequence, which has no pages yet, and return its number."""
        return self._enter([], 0)

    def length(self, seq: int) -> int:
        """How many tokens the sequence has."""
        return self._lengths[self._held(seq)]

    def block_table(self, seq: int) -> list[int]:
        """The pages of the sequence in the order of its tokens; a copy."""
        return list(self._tables[self._held(seq)])

    def append(
        self, seq: int, k: Float[Tensor, "g t d_head"], v: Float[Tensor, "g t d_value"]
    ) -> None:
        """Keep new keys and values behind those of the sequence.

        Raises ValueError when there are too few free pages (then nothing is kept and no page
        taken), or when the tensors do not fit the pool in shape or dtype, or want gradients.
        """
        start = self.length(seq)
        self._check(k, v)
        table, stop = self._tables[seq], start + k.shape[1]
        copy = start < stop and start % self._size and self.pool.references(table[-1]) > 1
        missing = -(-stop // self._size) - len(table) + bool(copy)
        if missing > self.pool.n_free:
            raise ValueError(
                f"sequence {seq} needs {missing} more pages for {k.shape[1]} tokens, but of "
                f"{self.pool.n_pages} pages {self.pool.n_free} are free; free a sequence, or make "
                f"a larger pool"
            )
        if copy:
            table[-1] = self._copied(table[-1])
        while len(table) * self._size < stop:
            table.append(self.pool.take())
        token = torch.arange(start, stop, device=self.pool.k.device)
        page = torch.tensor(table, dtype=torch.long, device=token.device)[token // self._size]
        with torch.no_grad():
            self.pool.k[page, :, token % self._size] = rearrange(k, "g t d -> t g d")
            self.pool.v[page, :, token % self._size] = rearrange(v, "g t d -> t g d")
        self._lengths[seq] = stop

    def gather(self, seq: int) -> tuple[Float[Tensor, "g s d_head"], Float[Tensor, "g s d_value"]]:
        """Keys and values of the sequence in order, copied out of their pages."""
        s = self.length(seq)
        table = torch.tensor(self._tables[seq], dtype=torch.long, device=self.pool.k.device)
        k, v = (
            rearrange(pages[table], "pages g size d -> g (pages size) d")[:, :s]
            for pages in (self.pool.k, self.pool.v)
        )
        return k, v

    def fork(self, seq: int) -> int:
        """Start a sequence that has the same tokens, and return its number; no page is copied."""
        length, table = self.length(seq), self.block_table(seq)
        for page in table:
            self.pool.share(page)
        return self._enter(table, length)

    def free(self, seq: int) -> None:
        """Forget the sequence; pages that it shared with no other go back to the pool."""
        for page in self._tables.pop(self._held(seq)):
            self.pool.release(page)
        del self._lengths[seq]

    @property
    def _size(self) -> int:
        return self.pool.page_size

    def _enter(self, table: list[int], length: int) -> int:
        seq, self._next = self._next, self._next + 1
        self._tables[seq], self._lengths[seq] = table, length
        return seq

    def _copied(self, page: int) -> int:
        copy = self.pool.take()
        self.pool.k[copy], self.pool.v[copy] = self.pool.k[page], self.pool.v[page]
        self.pool.release(page)
        return copy

    def _held(self, seq: int) -> int:
        if seq not in self._tables:
            raise ValueError(
                f"there is no sequence {seq}, only {self.sequences}; it was never added, "
                f"or is freed; add() and fork() give numbers"
            )
        return seq

    def _check(self, k: Tensor, v: Tensor) -> None:
        for name, new, pages in [("k", k, self.pool.k), ("v", v, self.pool.v)]:
            _, g, _, width = pages.shape
            if new.shape != (g, k.shape[1], width):
                raise ValueError(
                    f"{name} must have the shape (g, t, width) = ({g}, t, {width}) of this pool, "
                    f"with one t for k and v, got {tuple(new.shape)}; make a pool that fits"
                )
            if new.dtype != pages.dtype:
                raise ValueError(
                    f"{name} must have the dtype of the pool, {pages.dtype}, got {new.dtype}; "
                    f"make the pool with dtype={new.dtype}"
                )
            if torch.is_grad_enabled() and new.requires_grad:
                raise ValueError(
                    f"a cache is for inference, but {name} requires gradients; "
                    f"wrap the call in torch.no_grad(), or train without a cache"
                )
