"""Wrong answers to the exercises of chapter 06, so that a check can name what it sees.

One dictionary an exercise: a key of `plainformer.messages.MISTAKES`, and the function that somebody
with this mistake would have written. No entry is right; all look reasonable.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

Mask = Bool[Tensor, "t s"]
Rows = Float[Tensor, "*batch t d"]


def _band(t: int, s: int, left: int, right: int, shift: int | None = None) -> Mask:
    """Queries at `shift` and on, keys from 0 on; `left` and `right` may be below 0 here."""
    shift = s - t if shift is None else shift
    distance = torch.arange(s) - torch.arange(shift, shift + t)[:, None]
    return (distance >= -left) & (distance <= right)


def _sides(w: int, causal: bool) -> tuple[int, int]:
    return (w - 1, 0) if causal else (w // 2, w // 2)


FAR = 10**6  # further than any sequence of a check is long

WINDOW = {
    "window_one_too_wide": lambda t, s, w, causal: _band(
        t, s, *((w, 0) if causal else _sides(w, causal))
    ),
    "window_one_too_narrow": lambda t, s, w, causal: _band(
        t, s, *((w - 2, 0) if causal else (w // 2, w // 2 - 1))
    ),
    "window_w_on_each_side": lambda t, s, w, causal: _band(
        t, s, *((w - 1, 0) if causal else (w, w))
    ),
    "window_half_of_causal": lambda t, s, w, causal: _band(
        t, s, *((w // 2, 0) if causal else _sides(w, causal))
    ),
    "window_both_ways": lambda t, s, w, causal: _band(t, s, w // 2, w // 2),
    "window_back_only": lambda t, s, w, causal: _band(t, s, w - 1, 0),
    "window_ignored": lambda t, s, w, causal: _band(t, s, FAR, 0 if causal else FAR),
    "causal_without_window": lambda t, s, w, causal: _band(
        t, s, *((FAR, 0) if causal else (w // 2, w // 2))
    ),
    "causal_both_ways": lambda t, s, w, causal: _band(
        t, s, *((w - 1, w - 1) if causal else (w // 2, w // 2))
    ),
    "sides_one_short": lambda t, s, w, causal: _band(
        t, s, *((w - 1, 0) if causal else (w // 2 - 1, w // 2 - 1))
    ),
    "diagonal_hidden": lambda t, s, w, causal: _band(t, s, *_sides(w, causal)) & ~_band(t, s, 0, 0),
    "top_left": lambda t, s, w, causal: _band(t, s, *_sides(w, causal), shift=0),
    "looks_forward": lambda t, s, w, causal: _band(t, s, *reversed(_sides(w, causal))),
    "mask_inverted": lambda t, s, w, causal: ~_band(t, s, *_sides(w, causal)),
}


def _rounded_up(a: int, b: int) -> int:
    return -(-a // b)


# One number of the dictionary each: functions of n, w and n_layers.
REACH = {
    "pairs": {
        "first_rows_counted_full": lambda n, w, n_layers: n * w,
        "window_ignored": lambda n, w, n_layers: n * (n + 1) // 2,
        "window_one_too_wide": lambda n, w, n_layers: n * (w + 1) - w * (w + 1) // 2,
        "window_both_ways": lambda n, w, n_layers: n * (w + 1) - w // 2 * (w // 2 + 1),
        "own_cell_forgotten": lambda n, w, n_layers: n * (w - 1) - w * (w - 1) // 2,
    },
    "back": {
        "own_place_counted_in": lambda n, w, n_layers: n_layers * w,
        "one_layer_only": lambda n, w, n_layers: w - 1,
        "itself_counted": lambda n, w, n_layers: n_layers * (w - 1) + 1,
        "half_of_it": lambda n, w, n_layers: n_layers * w // 2,
        "layers_multiply": lambda n, w, n_layers: w**n_layers - 1,
    },
    "layers": {
        "rounded_down": lambda n, w, n_layers: (n - 1) // (w - 1),
        "own_place_counted_in": lambda n, w, n_layers: _rounded_up(n - 1, w),
        "whole_windows_counted": lambda n, w, n_layers: _rounded_up(n, w),
        "one_too_many_where_it_fits": lambda n, w, n_layers: (n - 1) // (w - 1) + 1,
    },
    "field": {
        "itself_forgotten": lambda n, w, n_layers: n_layers * w,
        "window_w_on_each_side": lambda n, w, n_layers: 2 * n_layers * w + 1,
        "whole_fields_added": lambda n, w, n_layers: n_layers * (w + 1),
        "one_side_only": lambda n, w, n_layers: n_layers * w // 2 + 1,
        "one_layer_only": lambda n, w, n_layers: w + 1,
        "layers_multiply": lambda n, w, n_layers: (w + 1) ** n_layers,
    },
    "with_global": {
        "one_look_is_enough": lambda n, w, n_layers: 1,
        "global_token_ignored": lambda n, w, n_layers: _rounded_up(n - 1, w // 2),
        "there_back_and_out": lambda n, w, n_layers: 3,
    },
}


def _features(x: Rows) -> Rows:
    return x.clamp(max=0).exp() + F.relu(x)


def _table(q: Rows, k: Rows, causal: bool, features: Callable, diagonal: int = 0) -> Rows:
    table = features(q) @ features(k).mT
    return table.tril(diagonal) if causal else table


def _linear(
    q: Rows,
    k: Rows,
    v: Rows,
    causal: bool,
    *,
    features: Callable = _features,
    diagonal: int = 0,
    normaliser: Callable = lambda table, whole: table.sum(dim=-1, keepdim=True),
) -> Rows:
    """What is right, but for the one thing that a caller changes."""
    table = _table(q, k, causal, features, diagonal)
    whole = _table(q, k, False, features)
    return table @ v / normaliser(table, whole)


def _softmax_still(q: Rows, k: Rows, v: Rows, causal: bool) -> Rows:
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


LINEAR = {
    "normaliser_missing": lambda *args: _linear(*args, normaliser=lambda table, whole: 1.0),
    "normaliser_not_causal": lambda *args: _linear(
        *args, normaliser=lambda table, whole: whole.sum(dim=-1, keepdim=True)
    ),
    "divided_by_the_number_of_keys": lambda *args: _linear(
        *args, normaliser=lambda table, whole: (table != 0).sum(dim=-1, keepdim=True)
    ),
    "sums_over_all_keys": lambda q, k, v, causal: _linear(q, k, v, False),
    "always_causal": lambda q, k, v, causal: _linear(q, k, v, True),
    "own_key_left_out": lambda *args: _linear(*args, diagonal=-1),
    "features_forgotten": lambda *args: _linear(*args, features=lambda x: x),
    "elu_without_one": lambda *args: _linear(*args, features=F.elu),
    "softmax_still": _softmax_still,
    "scaled_before_features": lambda q, k, v, causal: _linear(q / q.shape[-1] ** 0.5, k, v, causal),
    "features_of_values": lambda q, k, v, causal: _linear(q, k, _features(v), causal),
}


State = tuple[Tensor, Tensor, Tensor]


def _step(
    kv: Tensor,
    z: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    features: Callable = _features,
    write: Callable = lambda kv, new: kv + new,
    count: Callable = lambda z, new: z + new,
    read: Callable = lambda old, new: new,
    divide: Callable = lambda phi_q, z, phi_k: (phi_q * z).sum(dim=-1, keepdim=True),
) -> State:
    """One token; what is right, but for what a caller changes."""
    phi_q, phi_k = features(q), features(k)
    new_kv = write(kv, phi_k[..., :, None] * v[..., None, :])
    new_z = count(z, phi_k)
    out = (phi_q[..., None, :] @ read(kv, new_kv))[..., 0, :]
    return out / divide(phi_q, read(z, new_z), phi_k), new_kv, new_z


STEP = {
    "reads_before_writing": lambda *args: _step(*args, read=lambda old, new: old),
    "normaliser_missing": lambda *args: _step(*args, divide=lambda phi_q, z, phi_k: 1.0),
    "newest_key_normalises": lambda *args: _step(
        *args, divide=lambda phi_q, z, phi_k: (phi_q * phi_k).sum(dim=-1, keepdim=True)
    ),
    "state_overwritten": lambda *args: _step(
        *args, write=lambda kv, new: new, count=lambda z, new: new
    ),
    "z_not_updated": lambda *args: _step(*args, count=lambda z, new: z),
    "z_counts_tokens": lambda *args: _step(*args, count=lambda z, new: z + 1),
    "outer_transposed": lambda *args: _step(*args, write=lambda kv, new: kv + new.mT),
    "features_forgotten": lambda *args: _step(*args, features=lambda x: x),
    "elu_without_one": lambda *args: _step(*args, features=F.elu),
    "old_state_returned": lambda kv, z, q, k, v: (_step(kv, z, q, k, v)[0], kv, z),
}


def _masked(q: Rows, k: Rows, v: Rows, mask: Mask, scale: float | None = None) -> Rows:
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1).nan_to_num() @ v


def _causal_window(q: Rows, k: Rows, v: Rows, w: int, scale: float | None = None) -> Rows:
    return _masked(q, k, v, _band(len(q), len(k), w - 1, 0), scale)


def _block_number(n: int, w: int) -> Tensor:
    return torch.arange(n) // w


def _own_block(q: Rows, k: Rows, v: Rows, w: int) -> Rows:
    block = _block_number(len(q), w)
    return _masked(q, k, v, _band(len(q), len(q), FAR, 0) & (block == block[:, None]))


def _two_blocks(q: Rows, k: Rows, v: Rows, w: int) -> Rows:
    block = _block_number(len(q), w)
    return _masked(q, k, v, _band(len(q), len(q), FAR, 0) & (block >= block[:, None] - 1))


def _padding_shares(q: Rows, k: Rows, v: Rows, w: int) -> Rows:
    k, v = F.pad(k, (0, 0, w - 1, 0)), F.pad(v, (0, 0, w - 1, 0))
    return _causal_window(q, k, v, w)


LOCAL = {
    "window_one_too_wide": lambda q, k, v, w: _causal_window(q, k, v, w + 1),
    "window_ignored": lambda q, k, v, w: _causal_window(q, k, v, FAR),
    "window_both_ways": lambda q, k, v, w: _masked(q, k, v, _band(len(q), len(k), w // 2, w // 2)),
    "block_does_not_look_back": _own_block,
    "whole_block_before": _two_blocks,
    "padding_in_front_shares": _padding_shares,
    "unscaled": lambda q, k, v, w: _causal_window(q, k, v, w, 1.0),
}


def _with_global(
    q: Rows,
    k: Rows,
    v: Rows,
    global_q: Rows,
    global_k: Rows,
    global_v: Rows,
    is_global: Bool[Tensor, " n"],
    one_sided: int,
    *,
    columns: bool = True,
    rows: bool = True,
) -> Rows:
    """What is right, but for what a caller leaves out."""
    n = len(q)
    near = _band(n, n, one_sided, one_sided)
    local = _masked(q, k, v, near | is_global if columns else near)
    if not rows:
        return local
    found = _masked(global_q, global_k, global_v, torch.ones(n, n, dtype=torch.bool))
    return torch.where(is_global[:, None], found, local)


def _one_projection(q, k, v, global_q, global_k, global_v, is_global, one_sided) -> Rows:
    return _with_global(q, k, v, q, k, v, is_global, one_sided)


def _global_query_only(q, k, v, global_q, global_k, global_v, is_global, one_sided) -> Rows:
    return _with_global(q, k, v, global_q, k, v, is_global, one_sided)


def _global_keys_only(q, k, v, global_q, global_k, global_v, is_global, one_sided) -> Rows:
    return _with_global(q, k, v, q, global_k, global_v, is_global, one_sided)


def _global_everywhere(q, k, v, global_q, global_k, global_v, is_global, one_sided) -> Rows:
    """Local queries meet the global keys and values of global tokens."""
    mixed_k = torch.where(is_global[:, None], global_k, k)
    mixed_v = torch.where(is_global[:, None], global_v, v)
    local = _with_global(
        q, mixed_k, mixed_v, global_q, global_k, global_v, is_global, one_sided, rows=False
    )
    right = _with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided)
    return torch.where(is_global[:, None], right, local)


def _counted_twice(q, k, v, global_q, global_k, global_v, is_global, one_sided) -> Rows:
    n, width = len(q), q.shape[-1]
    twice = (_band(n, n, one_sided, one_sided) & is_global).to(q) * math.log(2)
    scores = q @ k.mT / width**0.5 + twice
    seen = _band(n, n, one_sided, one_sided) | is_global
    local = scores.masked_fill(~seen, -math.inf).softmax(dim=-1) @ v
    right = _with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided)
    return torch.where(is_global[:, None], right, local)


def _halved(q, k, v, global_q, global_k, global_v, is_global, one_sided) -> Rows:
    return _with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided // 2)


def _back_only(q, k, v, global_q, global_k, global_v, is_global, one_sided) -> Rows:
    local = _masked(q, k, v, _band(len(q), len(q), one_sided, 0) | is_global)
    right = _with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided)
    return torch.where(is_global[:, None], right, local)


def _everybody_global(q, k, v, global_q, global_k, global_v, is_global, one_sided) -> Rows:
    return _with_global(
        q, k, v, global_q, global_k, global_v, torch.ones_like(is_global), one_sided
    )


GLOBAL = {
    "global_rows_only": lambda *args: _with_global(*args, columns=False),
    "global_columns_only": lambda *args: _with_global(*args, rows=False),
    "global_token_ignored": lambda *args: _with_global(*args, columns=False, rows=False),
    "one_projection_for_both": _one_projection,
    "global_query_only": _global_query_only,
    "global_keys_only": _global_keys_only,
    "global_key_for_local": _global_everywhere,
    "global_key_counted_twice": _counted_twice,
    "one_side_halved": _halved,
    "window_back_only": _back_only,
    "everybody_global": _everybody_global,
}


class Pages:
    """Pages of tokens with a count of users; a subclass makes one mistake."""

    def __init__(self, n_pages: int, page_size: int):
        self.page_size = page_size
        self.pages: list[list] = [[] for _ in range(n_pages)]
        self.users = [0] * n_pages
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}
        self.next = 0

    def n_free(self) -> int:
        return self.users.count(0)

    def table(self, seq: int) -> list[int]:
        return list(self.tables[seq])

    def read(self, seq: int) -> list:
        tokens = [token for page in self.tables[seq] for token in self.pages[page]]
        return tokens[: self.lengths[seq]]

    def start(self) -> int:
        return self._enter([], 0)

    def _enter(self, table: list[int], length: int) -> int:
        seq, self.next = self.next, self.next + 1
        self.tables[seq], self.lengths[seq] = table, length
        return seq

    def _take(self, tokens=()) -> int:
        if 0 not in self.users:
            raise ValueError("no page is free")
        page = self.users.index(0)
        self.users[page], self.pages[page] = 1, list(tokens)
        return page

    def append(self, seq: int, token) -> None:
        table, slot = self.tables[seq], self.lengths[seq] % self.page_size
        if slot == 0:
            table.append(self._take())
        elif self._must_copy(table[-1]):
            old, table[-1] = table[-1], self._take(self.pages[table[-1]][:slot])
            self._let_go(old)
        self.pages[table[-1]][slot:] = [token]
        self.lengths[seq] += 1

    def _must_copy(self, page: int) -> bool:
        return self.users[page] > 1

    def _let_go(self, page: int) -> None:
        self.users[page] -= 1

    def fork(self, seq: int) -> int:
        for page in self.tables[seq]:
            self.users[page] += 1
        return self._enter(self.table(seq), self.lengths[seq])

    def free(self, seq: int) -> None:
        for page in self.tables.pop(seq):
            self.users[page] -= 1
        del self.lengths[seq]


class _NeverCopies(Pages):
    def _must_copy(self, page: int) -> bool:
        return False


class _CopyLeaks(Pages):
    def _let_go(self, page: int) -> None:
        pass


class _FreeLeaks(Pages):
    def free(self, seq: int) -> None:
        del self.tables[seq], self.lengths[seq]


class _FreesShared(Pages):
    def free(self, seq: int) -> None:
        for page in self.tables.pop(seq):
            self.users[page] = 0
        del self.lengths[seq]


class _FreesOwnOnly(Pages):
    """Frees pages that nobody shares, and forgets to count down the others."""

    def free(self, seq: int) -> None:
        for page in self.tables.pop(seq):
            if self.users[page] == 1:
                self.users[page] = 0
        del self.lengths[seq]


class _CopiesAtFork(Pages):
    def fork(self, seq: int) -> int:
        if self.n_free() < len(self.tables[seq]):
            raise ValueError("too few pages are free")
        return self._enter(
            [self._take(self.pages[page]) for page in self.tables[seq]], self.lengths[seq]
        )


class _ForkNotCounted(Pages):
    def fork(self, seq: int) -> int:
        return self._enter(self.table(seq), self.lengths[seq])


class _TakesTooEarly(Pages):
    """Takes the next page as soon as one is full."""

    def append(self, seq: int, token) -> None:
        if not self.tables[seq]:
            self.tables[seq].append(self._take())
        elif self._must_copy(self.tables[seq][-1]):
            slot = self.lengths[seq] % self.page_size
            old = self.tables[seq][-1]
            self.tables[seq][-1] = self._take(self.pages[old][:slot])
            self.users[old] -= 1
        slot = self.lengths[seq] % self.page_size
        self.pages[self.tables[seq][-1]][slot:] = [token]
        self.lengths[seq] += 1
        if self.lengths[seq] % self.page_size == 0:
            self.tables[seq].append(self._take())


class _OnePageAToken(Pages):
    def __init__(self, n_pages: int, page_size: int):
        super().__init__(n_pages, 1)


PAGES = {
    "shared_page_overwritten": _NeverCopies,
    "page_leaked_by_copy": _CopyLeaks,
    "pages_leaked_by_free": _FreeLeaks,
    "shared_page_freed": _FreesShared,
    "shared_page_leaked": _FreesOwnOnly,
    "fork_copies_everything": _CopiesAtFork,
    "fork_not_counted": _ForkNotCounted,
    "page_taken_too_early": _TakesTooEarly,
    "page_for_each_token": _OnePageAToken,
}


WASTE = {
    "pages": {
        "pages_rounded_down": lambda lengths, size, room, prompt, new, m: sum(
            x // size for x in lengths
        ),
        "tokens_laid_end_to_end": lambda lengths, size, room, prompt, new, m: _rounded_up(
            sum(lengths), size
        ),
        "one_page_too_many": lambda lengths, size, room, prompt, new, m: sum(
            x // size + 1 for x in lengths
        ),
        "all_as_the_longest": lambda lengths, size, room, prompt, new, m: (
            len(lengths) * _rounded_up(max(lengths), size)
        ),
    },
    "empty_in_pages": {
        "tokens_laid_end_to_end": lambda lengths, size, room, prompt, new, m: -sum(lengths) % size,
        "rest_for_gap": lambda lengths, size, room, prompt, new, m: sum(x % size for x in lengths),
        "full_page_counted_empty": lambda lengths, size, room, prompt, new, m: sum(
            size - x % size for x in lengths
        ),
    },
    "empty_in_rooms": {
        "filled_for_empty": lambda lengths, size, room, prompt, new, m: sum(lengths),
        "one_room_for_all": lambda lengths, size, room, prompt, new, m: room - sum(lengths),
        "whole_rooms_counted": lambda lengths, size, room, prompt, new, m: room * len(lengths),
        "all_as_the_longest": lambda lengths, size, room, prompt, new, m: (
            len(lengths) * (room - max(lengths))
        ),
    },
    "shared": {
        "nothing_shared": lambda lengths, size, room, prompt, new, m: (
            m * _rounded_up(prompt + new, size)
        ),
        "partial_page_shared": lambda lengths, size, room, prompt, new, m: (
            _rounded_up(prompt, size) + m * _rounded_up(new, size)
        ),
        "original_page_kept": lambda lengths, size, room, prompt, new, m: (
            _rounded_up(prompt, size) + m * _rounded_up(prompt % size + new, size)
        ),
        "prompt_not_counted": lambda lengths, size, room, prompt, new, m: (
            m * _rounded_up(prompt % size + new, size)
        ),
        "one_answer_only": lambda lengths, size, room, prompt, new, m: _rounded_up(
            prompt + new, size
        ),
    },
}
