"""Known answers to chapter 06: right ones written in many ways, wrong ones that look reasonable.

A right answer must get every point. A wrong one is a source and the words that its author must
see; or a source, None, and the reason why no message can tell more than where the numbers differ.
"""

RIGHT = {
    "06-window-mask": {
        "tril and triu": """
def window(t, s, w, causal):
    back, ahead = (w - 1, 0) if causal else (w // 2, w // 2)
    ones = torch.ones(t, s, dtype=torch.bool)
    return ones.tril(s - t + ahead) & ones.triu(s - t - back)
""",
        "loops": """
def window(t, s, w, causal):
    mask = torch.zeros(t, s, dtype=torch.bool)
    for i in range(t):
        p = s - t + i
        for j in range(s):
            if causal:
                mask[i, j] = p - w < j <= p
            else:
                mask[i, j] = abs(p - j) <= w // 2
    return mask
""",
        "the bottom of a large one": """
def window(t, s, w, causal):
    n = max(t, s)
    steps = torch.arange(n) - torch.arange(n).unsqueeze(1)
    if causal:
        big = (steps <= 0) & (steps > -w)
    else:
        big = steps.abs() <= w / 2
    return big[n - t :, n - s :]
""",
        "a causal mask twice": """
def window(t, s, w, causal):
    def up_to(shift):
        return torch.ones(t, s).tril(s - t + shift).bool()
    if causal:
        return up_to(0) ^ up_to(-w)
    return up_to(w // 2) & ~up_to(-w // 2 - 1)
""",
        "lists": """
def window(t, s, w, causal):
    rows = []
    for p in range(s - t, s):
        first, last = (p - w + 1, p) if causal else (p - w // 2, p + w // 2)
        rows.append([first <= j <= last for j in range(s)])
    return torch.tensor(rows)
""",
    },
    "06-receptive-field": {
        "sums and loops": """
def reach(n, w, n_layers):
    layers, at = 0, n - 1
    while at > 0:
        at, layers = at - (w - 1), layers + 1
    back, field = 0, 1
    for _ in range(n_layers):
        back += w - 1
        field += w
    pairs = sum(min(i + 1, w) for i in range(n))
    return {"pairs": pairs, "back": back, "layers": layers, "field": field, "with_global": 2}
""",
        "math": """
def reach(n, w, n_layers):
    return dict(
        pairs=w * (w + 1) // 2 + (n - w) * w,
        back=n_layers * w - n_layers,
        layers=math.ceil((n - 1) / (w - 1)),
        field=1 + 2 * n_layers * (w // 2),
        with_global=2,
    )
""",
    },
    "06-linear-attention-parallel": {
        "einsum": """
def linear(q, k, v, causal):
    a, b = elu_features(q), elu_features(k)
    if causal:
        kv = torch.cumsum(torch.einsum("...sf,...sd->...sfd", b, v), -3)
        z = torch.cumsum(b, -2)
        top = torch.einsum("...tf,...tfd->...td", a, kv)
        low = torch.einsum("...tf,...tf->...t", a, z)
    else:
        kv = torch.einsum("...sf,...sd->...fd", b, v)
        top = torch.einsum("...tf,...fd->...td", a, kv)
        low = torch.einsum("...tf,...f->...t", a, b.sum(-2))
    return top / low.unsqueeze(-1)
""",
        "a column of ones": """
def linear(q, k, v, causal):
    a, b = elu_features(q), elu_features(k)
    v = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
    if causal:
        both = (a[..., None] * (b[..., None] * v[..., None, :]).cumsum(-3)).sum(-2)
    else:
        both = a @ (b.transpose(-2, -1) @ v)
    return both[..., :-1] / both[..., -1:]
""",
        "a loop over tokens": """
def linear(q, k, v, causal):
    a, b = elu_features(q), elu_features(k)
    if not causal:
        return (a @ (b.mT @ v)) / (a * b.sum(-2, keepdim=True)).sum(-1, keepdim=True)
    kv = torch.zeros_like(b[..., 0, :, None] * v[..., 0, None, :])
    z = torch.zeros_like(b[..., 0, :])
    rows = []
    for x, y, value in zip(a.unbind(-2), b.unbind(-2), v.unbind(-2)):
        kv = kv + y.unsqueeze(-1) * value.unsqueeze(-2)
        z = z + y
        rows.append((x.unsqueeze(-2) @ kv).squeeze(-2) / (x * z).sum(-1, keepdim=True))
    return torch.stack(rows, dim=-2)
""",
        "chunks": """
def linear(q, k, v, causal):
    a, b = elu_features(q), elu_features(k)
    if not causal:
        return a @ (b.mT @ v) / (a @ b.mT.sum(-1, keepdim=True))
    rows, kv, z = [], 0, 0
    for x, y, u in zip(a.split(100, -2), b.split(100, -2), v.split(100, -2)):
        near = (x @ y.mT).tril()
        top, low = near @ u, near.sum(-1, keepdim=True)
        if rows:
            top, low = top + x @ kv, low + x @ z
        rows.append(top / low)
        kv, z = kv + y.mT @ u, z + y.mT.sum(-1, keepdim=True)
    return torch.cat(rows, dim=-2)
""",
        "features by hand, in float64": """
def linear(q, k, v, causal):
    def phi(x):
        x = x.double()
        return torch.where(x > 0, x + 1, x.exp())
    a, b, v64 = phi(q), phi(k), v.double()
    if causal:
        kv = (b.unsqueeze(-1) * v64.unsqueeze(-2)).cumsum(-3)
        top, low = (a.unsqueeze(-1) * kv).sum(-2), (a * b.cumsum(-2)).sum(-1, keepdim=True)
    else:
        top, low = a @ (b.mT @ v64), (a * b.sum(-2, keepdim=True)).sum(-1, keepdim=True)
    return (top / low).to(v.dtype)
""",
    },
    "06-linear-attention-recurrent": {
        "einsum": """
def linear_step(kv, z, q, k, v):
    a, b = elu_features(q), elu_features(k)
    kv = kv + torch.einsum("...f,...d->...fd", b, v)
    z = z + b
    top = torch.einsum("...f,...fd->...d", a, kv)
    return top / torch.einsum("...f,...f->...", a, z)[..., None], kv, z
""",
        "copies, in place": """
def linear_step(kv, z, q, k, v):
    kv, z = kv.clone(), z.clone()
    phi_k, phi_q = F.elu(k) + 1, F.elu(q) + 1
    kv += phi_k.unsqueeze(-1) @ v.unsqueeze(-2)
    z += phi_k
    out = (phi_q.unsqueeze(-1) * kv).sum(dim=-2)
    return out / (phi_q * z).sum(dim=-1, keepdim=True), kv, z
""",
        "number by number": """
def linear_step(kv, z, q, k, v):
    phi_q, phi_k = elu_features(q), elu_features(k)
    new_kv, new_z = torch.empty_like(kv), torch.empty_like(z)
    for i in range(kv.shape[-2]):
        new_z[..., i] = z[..., i] + phi_k[..., i]
        for j in range(kv.shape[-1]):
            new_kv[..., i, j] = kv[..., i, j] + phi_k[..., i] * v[..., j]
    total, count = 0, 0
    for i in range(kv.shape[-2]):
        total = total + phi_q[..., i, None] * new_kv[..., i, :]
        count = count + phi_q[..., i, None] * new_z[..., i, None]
    return [total / count, new_kv, new_z]
""",
    },
    "06-local-attention": {
        "keys gathered for each query": """
def local(q, k, v, w):
    n = len(q)
    w = min(w, n)
    k = F.pad(k, (0, 0, w - 1, 0)).unfold(0, w, 1)  # (n, d_head, w)
    v = F.pad(v, (0, 0, w - 1, 0)).unfold(0, w, 1)  # (n, d_value, w)
    scores = torch.einsum("nd,ndw->nw", q, k) / q.shape[-1] ** 0.5
    real = torch.arange(w) >= w - 1 - torch.arange(n)[:, None]
    weights = scores.masked_fill(~real, float("-inf")).softmax(dim=-1)
    return torch.einsum("nw,ndw->nd", weights, v)
""",
        "a loop over queries": """
def local(q, k, v, w):
    out = torch.empty(len(q), v.shape[1])
    scale = q.shape[1] ** -0.5
    for i in range(len(q)):
        first = max(0, i - w + 1)
        weights = (k[first : i + 1] @ q[i] * scale).softmax(0)
        out[i] = weights @ v[first : i + 1]
    return out
""",
        "shifted keys": """
def local(q, k, v, w):
    n = len(q)
    scores = q.new_full((n, min(w, n)), float("-inf"))
    for back in range(min(w, n)):
        scores[back:, back] = (q[back:] * k[: n - back]).sum(-1) / math.sqrt(q.shape[1])
    weights = scores.softmax(-1)
    out = torch.zeros_like(v)
    for back in range(min(w, n)):
        out[back:] += weights[back:, back, None] * v[: n - back]
    return out
""",
        "two blocks of w": """
def local(q, k, v, w):
    n, b = len(q), max(1, min(w, len(q)))
    blocks = -(-n // b)
    more = blocks * b - n
    q = F.pad(q, (0, 0, 0, more)).reshape(blocks, b, -1)
    k = F.pad(k, (0, 0, b, more)).unfold(0, 2 * b, b).mT
    v = F.pad(v, (0, 0, b, more)).unfold(0, 2 * b, b).mT
    i, j = torch.arange(b)[:, None], torch.arange(2 * b)
    near = (j - b <= i) & (j - b > i - w)
    real = (torch.arange(blocks)[:, None] * b + j - b >= 0)[:, None]
    out = dot_product_attention(q, k, v, near & real)
    return out.reshape(blocks * b, -1)[:n]
""",
        "torch's own attention in blocks": """
def local(q, k, v, w):
    rows = []
    for start in range(0, q.shape[0], 512):
        stop = min(start + 512, q.shape[0])
        first = max(0, start - w + 1)
        p, j = torch.arange(start, stop)[:, None], torch.arange(first, stop)
        mask = (j <= p) & (j > p - w)
        one = (x[None] for x in (q[start:stop], k[first:stop], v[first:stop]))
        rows.append(F.scaled_dot_product_attention(*one, attn_mask=mask)[0])
    return torch.cat(rows)
""",
    },
    "06-global-attention": {
        "row by row": """
def with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided):
    n, rows = len(q), []
    for i in range(n):
        if is_global[i]:
            weights = (global_k @ global_q[i] / q.shape[1] ** 0.5).softmax(0)
            rows.append(weights @ global_v)
        else:
            seen = is_global.clone()
            seen[max(0, i - one_sided) : i + one_sided + 1] = True
            weights = (k[seen] @ q[i] / q.shape[1] ** 0.5).softmax(0)
            rows.append(weights @ v[seen])
    return torch.stack(rows)
""",
        "scores put together": """
def with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided):
    n, d = q.shape
    place = torch.arange(n)
    near = (place - place[:, None]).abs() <= one_sided
    scores = q @ k.T / math.sqrt(d)
    scores = scores.masked_fill(~(near | is_global[None, :]), float("-inf"))
    out = scores.softmax(-1) @ v
    out[is_global] = (global_q[is_global] @ global_k.T / math.sqrt(d)).softmax(-1) @ global_v
    return out
""",
        "torch's own attention": """
def with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided):
    mask = torch.ones(len(q), len(q)).tril(one_sided).triu(-one_sided).bool()
    mask[:, is_global] = True
    one = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask)[0]
    two = F.scaled_dot_product_attention(global_q[None], global_k[None], global_v[None])[0]
    here = is_global[:, None].to(v.dtype)
    return here * two + (1 - here) * one
""",
    },
    "06-block-table": {
        "tokens with the pages, a list of free ones": """
class Pages:
    def __init__(self, n_pages, page_size):
        self.size = page_size
        self.store = {}  # page -> [tokens, users]
        self.unused = list(range(n_pages))
        self.texts = {}
        self.numbers = iter(range(10**9))

    def start(self):
        seq = next(self.numbers)
        self.texts[seq] = ([], [])
        return seq

    def append(self, seq, token):
        table, tokens = self.texts[seq]
        full = len(tokens) % self.size == 0
        shared = bool(table) and not full and self.store[table[-1]] > 1
        if full or shared:
            if not self.unused:
                raise ValueError("out of pages")
            page = self.unused.pop()
            self.store[page] = 1
            if shared:
                self.store[table[-1]] -= 1
                table[-1] = page
            else:
                table.append(page)
        tokens.append(token)

    def fork(self, seq):
        table, tokens = self.texts[seq]
        twin = self.start()
        self.texts[twin] = (table[:], tokens[:])
        for page in table:
            self.store[page] += 1
        return twin

    def free(self, seq):
        for page in self.texts.pop(seq)[0]:
            self.store[page] -= 1
            if self.store[page] == 0:
                del self.store[page]
                self.unused.append(page)

    def table(self, seq):
        return list(self.texts[seq][0])

    def read(self, seq):
        return list(self.texts[seq][1])

    def n_free(self):
        return len(self.unused)
""",
        "users counted anew each time": """
class Pages:
    def __init__(self, n_pages, page_size):
        self.n_pages, self.page_size = n_pages, page_size
        self.content = torch.full((n_pages, page_size), -1)
        self.tables, self.lengths, self.count = {}, {}, 100

    def users(self, page):
        return sum(page in table for table in self.tables.values())

    def free_pages(self):
        return [page for page in range(self.n_pages) if self.users(page) == 0]

    def start(self):
        self.count += 1
        self.tables[self.count], self.lengths[self.count] = [], 0
        return self.count

    def append(self, seq, token):
        place = self.lengths[seq] % self.page_size
        table = self.tables[seq]
        if place == 0:
            if not self.free_pages():
                raise ValueError("full")
            table.append(self.free_pages()[-1])
        elif self.users(table[-1]) > 1:
            if not self.free_pages():
                raise ValueError("full")
            fresh = self.free_pages()[-1]
            self.content[fresh] = self.content[table[-1]]
            table[-1] = fresh
        self.content[table[-1], place] = token
        self.lengths[seq] += 1

    def fork(self, seq):
        twin = self.start()
        self.tables[twin] = self.tables[seq].copy()
        self.lengths[twin] = self.lengths[seq]
        return twin

    def free(self, seq):
        del self.tables[seq], self.lengths[seq]

    def table(self, seq):
        return self.tables[seq].copy()

    def read(self, seq):
        if not self.tables[seq]:
            return []
        return self.content[self.tables[seq]].flatten()[: self.lengths[seq]].tolist()

    def n_free(self):
        return len(self.free_pages())
""",
    },
    "06-paged-waste": {
        "page by page": """
def waste(lengths, page_size, room, prompt, new, m):
    pages = empty = 0
    for length in lengths:
        while length > 0:
            pages += 1
            empty += max(0, page_size - length)
            length -= page_size
    full, rest = divmod(prompt, page_size)
    return {
        "pages": pages,
        "empty_in_pages": empty,
        "empty_in_rooms": sum(room - length for length in lengths),
        "shared": full + sum(math.ceil((rest + new) / page_size) for _ in range(m)),
    }
""",
        "ceilings": """
def waste(lengths, page_size, room, prompt, new, m):
    used = [math.ceil(x / page_size) for x in lengths]
    one = math.ceil((prompt + new) / page_size)
    return {
        "pages": sum(used),
        "empty_in_pages": sum(u * page_size - x for u, x in zip(used, lengths)),
        "empty_in_rooms": room * len(lengths) - sum(lengths),
        "shared": one + (m - 1) * (one - prompt // page_size),
    }
""",
    },
    "06-what-changes": {
        "upper case": """
def what_changes():
    wrong = "mask_is_cheap beyond_is_lost layers_alternate same_as_softmax flash_is_linear"
    answers = {name: "False" for name in [*wrong.split(), "fewer_bytes"]}
    for name in "cache_stops global_is_seen two_layers state_is_fixed".split():
        answers[name] = "True"
    answers |= {"paging_is_exact": "TRUE", "less_than_a_page": "True"}
    return answers | {"half_each_side": "Depends", "linear_is_less": "depends"}
""",
        "in another order": """
def what_changes():
    key = {
        "true": ["less_than_a_page", "paging_is_exact", "state_is_fixed", "two_layers",
                 "global_is_seen", "cache_stops"],
        "false": ["fewer_bytes", "flash_is_linear", "same_as_softmax", "layers_alternate",
                  "beyond_is_lost", "mask_is_cheap"],
        "depends": ["linear_is_less", "half_each_side"],
    }
    return {name: answer for answer, names in key.items() for name in names}
""",
    },
}


def _body(head: str, body: str) -> str:
    return f"\n{head}\n    " + body.replace("\n", "\n    ") + "\n"


def _window(back: str, ahead: str, sides: str, *, shift: str = "s - t", after: str = "") -> str:
    return _body(
        "def window(t, s, w, causal):",
        f"back, ahead = ({back}, {ahead}) if causal else ({sides})\n"
        f"p = torch.arange(t)[:, None] + {shift}\n"
        f"j = torch.arange(s)\n"
        f"mask = (j >= p - back) & (j <= p + ahead)\n"
        f"return mask{after}",
    )


def _reach(**wrong: str) -> str:
    right = {
        "pairs": "n * w - w * (w - 1) // 2",
        "back": "n_layers * (w - 1)",
        "layers": "-(-(n - 1) // (w - 1))",
        "field": "n_layers * w + 1",
        "with_global": "2",
    }
    items = ", ".join(f'"{key}": {formula}' for key, formula in (right | wrong).items())
    return _body("def reach(n, w, n_layers):", f"return {{{items}}}")


LINEAR = """
def linear(q, k, v, causal):
    phi_q, phi_k = {features}
    {values}
    if {causal}:
        kv = (phi_k[..., :, None] * v[..., None, :]).cumsum(dim=-3)
        z = {z}
        total = (phi_q[..., None, :] @ kv).squeeze(-2)
        count = (phi_q * z).sum(dim=-1, keepdim=True)
    else:
        total = phi_q @ (phi_k.mT @ v)
        count = phi_q @ phi_k.sum(dim=-2)[..., None]
    return {result}
"""


def _linear(
    features: str = "elu_features(q), elu_features(k)",
    values: str = "n = k.shape[-2]",
    causal: str = "causal",
    z: str = "phi_k.cumsum(dim=-2)",
    result: str = "total / count",
) -> str:
    return LINEAR.format(features=features, values=values, causal=causal, z=z, result=result)


TABLE = """
def linear(q, k, v, causal):
    table = elu_features(q) @ elu_features(k).mT
    if causal:
        table = table.tril({diagonal})
    return table @ v / table.sum(dim=-1, keepdim=True)
"""

STEP = """
def linear_step(kv, z, q, k, v):
    phi_q, phi_k = {features}
    new_kv = {kv}
    new_z = {z}
    total = (phi_q[..., None, :] @ {read_kv})[..., 0, :]
    return total / {count}, {back}
"""


def _step(
    features: str = "elu_features(q), elu_features(k)",
    kv: str = "kv + phi_k[..., :, None] * v[..., None, :]",
    z: str = "z + phi_k",
    read_kv: str = "new_kv",
    count: str = "(phi_q * new_z).sum(dim=-1, keepdim=True)",
    back: str = "new_kv, new_z",
) -> str:
    return STEP.format(features=features, kv=kv, z=z, read_kv=read_kv, count=count, back=back)


LOCAL = """
def local(q, k, v, w):
    rows = []
    for start in range(0, len(q), {block}):
        stop = min(start + {block}, len(q))
        first = {first}
        p, j = torch.arange(start, stop)[:, None], torch.arange(first, stop)
        mask = {mask}
        scores = q[start:stop] @ k[first:stop].T / {divisor}
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        rows.append(weights @ v[first:stop])
    return torch.cat(rows)
"""


def _local(
    block: str = "256",
    first: str = "max(0, start - w + 1)",
    mask: str = "(j <= p) & (j > p - w)",
    divisor: str = "q.shape[1] ** 0.5",
) -> str:
    return LOCAL.format(block=block, first=first, mask=mask, divisor=divisor)


GLOBAL = """
def with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided):
    n, d = q.shape
    place = torch.arange(n)
    distance = place - place[:, None]
    near = {near}
    scores = q @ k.T / d**0.5
    out = scores.masked_fill(~({seen}), float("-inf")).softmax(-1) @ v
    found = {found}
    return torch.where({rows}, found, out)
"""


def _global(
    near: str = "distance.abs() <= one_sided",
    seen: str = "near | is_global",
    found: str = "(global_q @ global_k.T / d**0.5).softmax(-1) @ global_v",
    rows: str = "is_global[:, None]",
) -> str:
    return GLOBAL.format(near=near, seen=seen, found=found, rows=rows)


PAGES = """
class Pages:
    def __init__(self, n_pages, page_size):
        self.page_size = page_size
        self.pages = [[] for _ in range(n_pages)]
        self.users = [0] * n_pages
        self.tables, self.lengths, self.started = {{}}, {{}}, 0

    def start(self):
        seq, self.started = self.started, self.started + 1
        self.tables[seq], self.lengths[seq] = [], 0
        return seq

    def take(self):
        if 0 not in self.users:
            raise {error}("no page is free")
        page = self.users.index(0)
        self.users[page], self.pages[page] = 1, []
        return page

    def append(self, seq, token):
        table, slot = self.tables[seq], self.lengths[seq] % self.page_size
{append}
        self.lengths[seq] += 1

    def fork(self, seq):
        twin = self.start()
        {table}
        self.lengths[twin] = self.lengths[seq]
        for page in self.tables[seq]:
            {count}
        return twin

    def free(self, seq):
        for page in self.tables.pop(seq):
            {drop}
        del self.lengths[seq]

    def table(self, seq):
        return list(self.tables[seq])

    def read(self, seq):
        tokens = [token for page in self.tables[seq] for token in self.pages[page]]
        return {read}

    def n_free(self):
        return self.users.count(0)
"""
APPEND = """        if slot == 0:
            table.append(self.take())
        elif {must_copy}:
            page = self.take()
            self.pages[page] = {copied}
            {let_go}
            table[-1] = page
        {write}"""


def _pages(
    error: str = "ValueError",
    must_copy: str = "self.users[table[-1]] > 1",
    copied: str = "self.pages[table[-1]][:slot]",
    let_go: str = "self.users[table[-1]] -= 1",
    write: str = "self.pages[table[-1]][slot:] = [token]",
    table: str = "self.tables[twin] = list(self.tables[seq])",
    count: str = "self.users[page] += 1",
    drop: str = "self.users[page] -= 1",
    read: str = "tokens[: self.lengths[seq]]",
) -> str:
    append = APPEND.format(must_copy=must_copy, copied=copied, let_go=let_go, write=write)
    return PAGES.format(error=error, append=append, table=table, count=count, drop=drop, read=read)


def _waste(**wrong: str) -> str:
    right = {
        "pages": "sum(-(-x // page_size) for x in lengths)",
        "empty_in_pages": "sum(-x % page_size for x in lengths)",
        "empty_in_rooms": "len(lengths) * room - sum(lengths)",
        "shared": "prompt // page_size + m * -(-(prompt % page_size + new) // page_size)",
    }
    items = ", ".join(f'"{key}": {formula}' for key, formula in (right | wrong).items())
    return _body("def waste(lengths, page_size, room, prompt, new, m):", f"return {{{items}}}")


KEY = {
    "mask_is_cheap": "false",
    "beyond_is_lost": "false",
    "half_each_side": "depends",
    "cache_stops": "true",
    "global_is_seen": "true",
    "layers_alternate": "false",
    "two_layers": "true",
    "same_as_softmax": "false",
    "state_is_fixed": "true",
    "linear_is_less": "depends",
    "flash_is_linear": "false",
    "fewer_bytes": "false",
    "paging_is_exact": "true",
    "less_than_a_page": "true",
}


def _says(**wrong: str) -> str:
    return f"\ndef what_changes():\n    return {KEY | wrong}\n"


WRONG = {
    "06-window-mask": {
        "causal without a far end": (
            """
def window(t, s, w, causal):
    back = torch.arange(s - t, s)[:, None] - torch.arange(s)
    return back >= 0 if causal else back.abs() <= w // 2
""",
            "no far end",
        ),
        "causal to both sides": (
            """
def window(t, s, w, causal):
    back = torch.arange(s - t, s)[:, None] - torch.arange(s)
    return back.abs() < w if causal else back.abs() <= w // 2
""",
            "looks ahead as well",
        ),
        "sides strictly below half": (
            """
def window(t, s, w, causal):
    back = torch.arange(s - t, s)[:, None] - torch.arange(s)
    return (back >= 0) & (back < w) if causal else back.abs() < w // 2
""",
            "one position short",
        ),
        "one too wide": (_window("w", "0", "w // 2, w // 2"), "one position too many"),
        "one too narrow": (
            _window("w - 2", "0", "w // 2, w // 2 - 1"),
            "one position too few",
        ),
        "twice too wide": (_window("w - 1", "0", "w, w"), "twice too wide"),
        "half of a causal one": (
            _window("w // 2", "0", "w // 2, w // 2"),
            "cuts a window with two sides in half",
        ),
        "both ways": (_window("w // 2", "w // 2", "w // 2, w // 2"), "looks ahead, too"),
        "back only": (_window("w - 1", "0", "w - 1, 0"), "looks back only, where"),
        "no window": (_window("9999", "0", "9999, 9999"), "The window plays no part"),
        "own hidden": (
            _window("w - 1", "0", "w // 2, w // 2", after=" & (j != p)"),
            "hides each position from itself",
        ),
        "top left": (
            _window("w - 1", "0", "w // 2, w // 2", shift="0"),
            "the last t of the s",
        ),
        "forward": (_window("0", "w - 1", "w // 2, w // 2"), "what comes after"),
        "True means closed": (
            _window("w - 1", "0", "w // 2, w // 2").replace("return mask", "return ~mask"),
            "True means may look",
        ),
        "floats": (
            _window("w - 1", "0", "w // 2, w // 2", after=".float()"),
            "expected boolean",
        ),
        "in a circle": (
            _body(
                "def window(t, s, w, causal):",
                "p = torch.arange(t)[:, None] + s - t\n"
                "back, ahead = (w - 1, 0) if causal else (w // 2, w // 2)\n"
                "return (torch.arange(s) - p + back) % s <= back + ahead",
            ),
            None,
            "a window that goes on at the other end; the message shows the first place",
        ),
        "the library": (
            "\nimport plainformer.masks\n\ndef window(t, s, w, causal):\n"
            "    back, ahead = (w - 1, 0) if causal else (w // 2, w // 2)\n"
            "    return plainformer.masks.window_mask(t, s, left=back, right=ahead)\n",
            "do without",
        ),
    },
    "06-receptive-field": {
        "first rows full": (_reach(pairs="n * w"), "the first rows have fewer"),
        "all pairs": (_reach(pairs="n * (n + 1) // 2"), "The window plays no part"),
        "pairs of both sides": (
            _reach(pairs="n * (w + 1) - w // 2 * (w // 2 + 1)"),
            "looks ahead, too",
        ),
        "own cell forgotten": (
            _reach(pairs="n * (w - 1) - w * (w - 1) // 2"),
            "own cell",
        ),
        "w a layer": (_reach(back="n_layers * w"), "w - 1 are left"),
        "one layer": (_reach(back="w - 1"), "what one layer reaches"),
        "itself counted": (_reach(back="n_layers * (w - 1) + 1"), "counts the position itself"),
        "half a window": (_reach(back="n_layers * w // 2"), "one side only"),
        "powers": (_reach(back="w**n_layers - 1"), "windows of one width add up"),
        "rounded down": (_reach(layers="(n - 1) // (w - 1)"), "rounds down"),
        "layers of w": (_reach(layers="-(-(n - 1) // w)"), "w - 1 are left"),
        "whole windows": (_reach(layers="-(-n // w)"), "whole windows fit"),
        "n positions": (_reach(layers="-(-n // (w - 1))"), "end exactly on position 0"),
        "one too many where exact": (
            _reach(layers="(n - 1) // (w - 1) + 1"),
            "end exactly on position 0",
        ),
        "field without itself": (_reach(field="n_layers * w"), "leaves the position itself out"),
        "field twice": (_reach(field="2 * n_layers * w + 1"), "twice too wide"),
        "fields side by side": (_reach(field="n_layers * (w + 1)"), "adds whole windows"),
        "one side": (_reach(field="n_layers * w // 2 + 1"), "the window has two"),
        "one look": (_reach(with_global="1"), "see each other through it"),
        "no global token": (_reach(with_global="-(-(n - 1) // (w // 2))"), "without the global"),
        "three": (_reach(with_global="3"), "to the global token, and from it"),
        "the masks asked": (
            "\ndef reach(n, w, n_layers):\n"
            "    return {'pairs': int(window_mask(n, left=w - 1).sum()), 'back': 0, 'layers': 0,"
            " 'field': 0, 'with_global': 2}\n",
            "do without",
        ),
    },
    "06-linear-attention-parallel": {
        "not divided": (_linear(result="total"), "before it is divided"),
        "divided by all keys": (
            _linear(z="phi_k.sum(dim=-2, keepdim=True)"),
            "runs over all keys",
        ),
        "divided by their number": (
            _linear(result="total / (torch.arange(1.0, n + 1)[:, None] if causal else float(n))"),
            "divides by the number of keys",
        ),
        "divided by the length": (
            _linear(result="total / n"),
            None,
            "the length of the text for the causal sum, too; the message shows the numbers",
        ),
        "never causal": (_linear(causal="False"), "with causal=True both sums end"),
        "always causal": (
            TABLE.format(diagonal="").replace("if causal", "if True"),
            "here the sums end at the query".replace("here the", "these"),
        ),
        "no features": (_linear(features="q, k"), "take their features first"),
        "elu alone": (_linear(features="F.elu(q), F.elu(k)"), "may be negative"),
        "features of q alone": (
            _linear(features="elu_features(q), k"),
            None,
            "half of the features; the message shows where the numbers differ",
        ),
        "softmax": (
            "\ndef linear(q, k, v, causal):\n"
            "    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)\n",
            "This is softmax attention",
        ),
        "scaled": (
            _linear(features="elu_features(q / q.shape[-1] ** 0.5), elu_features(k)"),
            "divides q by sqrt(d_head) first",
        ),
        "features of v": (
            _linear(values="v = elu_features(v)"),
            "they are averaged as they are",
        ),
        "own key left out": (
            TABLE.format(diagonal="-1"),
            "NaN or infinite",
        ),
        "a table of all pairs": (TABLE.format(diagonal=""), "more memory"),
        "a table, when causal": (
            _linear().replace(
                "kv = (phi",
                "table = (phi_q @ phi_k.mT).tril()\n"
                "        return table @ v / table.sum(dim=-1, keepdim=True)\n        kv = (phi",
            ),
            "more memory",
        ),
        "a softmax over features": (
            _linear(features="q.softmax(-1), k.softmax(-1)"),
            None,
            "other features; the message shows where the numbers differ",
        ),
        "the library": (
            "\ndef linear(q, k, v, causal):\n"
            "    return (causal_linear_attention if causal else linear_attention)(q, k, v)\n",
            "do without",
        ),
    },
    "06-linear-attention-recurrent": {
        "reads first": (
            _step(read_kv="kv", count="(phi_q * z).sum(dim=-1, keepdim=True)"),
            "NaN or infinite",
        ),
        "reads first, divides by the new": (
            _step(read_kv="kv"),
            None,
            "half of it old; the message shows where the numbers differ",
        ),
        "not divided": (_step(count="1.0"), "before it is divided"),
        "newest key divides": (
            _step(count="(phi_q * phi_k).sum(dim=-1, keepdim=True)"),
            "with the newest key alone",
        ),
        "overwritten": (
            _step(kv="phi_k[..., :, None] * v[..., None, :]", z="phi_k"),
            "keeps the newest token only",
        ),
        "z counts": (_step(z="z + 1"), "adds 1 to z"),
        "z as it was": (_step(z="z"), "NaN or infinite"),
        "outer product transposed": (
            _step(kv="kv + phi_k[..., None, :] * v[..., :, None]"),
            "adds v k^T",
        ),
        "no features": (_step(features="q, k"), "take their features first"),
        "elu alone": (_step(features="F.elu(q), F.elu(k)"), "may be negative"),
        "old state back": (_step(back="kv, z"), "that comes back is the old one"),
        "in place": (
            _step(kv="kv.add_(phi_k[..., :, None] * v[..., None, :])"),
            "changed its argument",
        ),
        "output only": (
            _step().replace(
                "return total / (phi_q * new_z).sum(dim=-1, keepdim=True), new_kv, new_z",
                "return total / (phi_q * new_z).sum(dim=-1, keepdim=True)",
            ),
            "3 items",
        ),
        "no leading axes": (
            _step(kv="kv + torch.outer(phi_k, v)"),
            "stopped with",
        ),
        "the library": (
            "\ndef linear_step(kv, z, q, k, v):\n"
            "    out, state = linear_attention_step(None, q, k, v)\n"
            "    return out, state.kv, state.z\n",
            "do without",
        ),
    },
    "06-local-attention": {
        "a mask over all pairs": (
            "\ndef local(q, k, v, w):\n"
            "    mask = window_mask(len(q), left=w - 1)\n"
            "    return dot_product_attention(q, k, v, mask)\n",
            "more memory",
        ),
        "blocks against all keys": (
            _local(block="8192", first="0"),
            None,
            "a quarter of all pairs at once and all of them in turn; it runs out of time or memory",
        ),
        "one too wide": (
            _local(first="max(0, start - w)", mask="(j <= p) & (j >= p - w)"),
            "one position too many",
        ),
        "blocks that do not look back": (
            _local(first="start"),
            None,
            "keys of the block before are missing; the message shows the first row",
        ),
        "blocks of w that do not look back": (
            _local(block="w", first="start", mask="j <= p"),
            "miss keys of the block before",
        ),
        "two whole blocks": (
            _local(block="w", first="max(0, start - w)", mask="j <= p"),
            "opens the whole block before",
        ),
        "the window cut off one short": (
            _local(first="max(0, start - w + 2)"),
            None,
            "one key of each block is missing; the message shows where",
        ),
        "no scale": (_local(divisor="1"), "without dividing"),
        "whole block seen": (
            _local(mask="j > p - w"),
            None,
            "looks ahead within its block; the message shows the first row",
        ),
        "padding counts": (
            "\ndef local(q, k, v, w):\n"
            "    k = F.pad(k, (0, 0, w - 1, 0)).unfold(0, w, 1)\n"
            "    v = F.pad(v, (0, 0, w - 1, 0)).unfold(0, w, 1)\n"
            "    scores = torch.einsum('nd,ndw->nw', q, k) / q.shape[-1] ** 0.5\n"
            "    return torch.einsum('nw,ndw->nd', scores.softmax(-1), v)\n",
            "padding in front",
        ),
        "the last block dropped": (
            _local().replace("return torch.cat(rows)", "return torch.cat(rows[:-1] or rows)"),
            "expected shape",
        ),
        "two sides": (
            "\ndef local(q, k, v, w):\n"
            "    out = []\n"
            "    for i in range(len(q)):\n"
            "        near = slice(max(0, i - w // 2), i + w // 2 + 1)\n"
            "        weights = (k[near] @ q[i] / q.shape[1] ** 0.5).softmax(0)\n"
            "        out.append(weights @ v[near])\n"
            "    return torch.stack(out)\n",
            "looks ahead, too",
        ),
        "no window": (
            "\ndef local(q, k, v, w):\n"
            "    return F.scaled_dot_product_attention(q[None], k[None], v[None],"
            " is_causal=True)[0]\n",
            "The window plays no part",
        ),
        "the library": (
            "\ndef local(q, k, v, w):\n    return local_attention(q, k, v, left=w - 1)\n",
            "do without",
        ),
    },
    "06-global-attention": {
        "global tokens ask with q": (
            """
def with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided):
    place = torch.arange(len(q))
    near = (place[:, None] - place).abs() <= one_sided
    local = dot_product_attention(q, k, v, near | is_global)
    return torch.where(is_global[:, None], dot_product_attention(q, global_k, global_v), local)
""",
            "asks with global_q",
        ),
        "rows only": (_global(seen="near"), "nobody far away sees them"),
        "columns only": (
            _global(rows="torch.zeros_like(is_global)[:, None]"),
            "they see their window only",
        ),
        "columns of queries": (
            _global(seen="near | is_global[:, None]"),
            "nobody far away sees them",
        ),
        "no global token": (
            _global(seen="near", rows="torch.zeros_like(is_global)[:, None]"),
            "without the global token",
        ),
        "ordinary projections": (
            _global(found="(q @ k.T / d**0.5).softmax(-1) @ v"),
            "they have their own",
        ),
        "global queries alone": (
            _global(found="(global_q @ k.T / d**0.5).softmax(-1) @ v"),
            "looks at global_k",
        ),
        "global keys for all": (
            _global().replace(
                "    scores = q @ k.T",
                "    k = torch.where(is_global[:, None], global_k, k)\n"
                "    v = torch.where(is_global[:, None], global_v, v)\n"
                "    scores = q @ k.T",
            ),
            "its ordinary key and value",
        ),
        "counted twice": (
            _global().replace(
                "    out = ",
                "    scores = scores + math.log(2) * (near & is_global)\n    out = ",
            ),
            "counts a global token twice",
        ),
        "half of it": (
            _global(near="distance.abs() <= one_sided // 2"),
            "halves one_sided",
        ),
        "back only": (
            _global(near="(distance <= 0) & (distance >= -one_sided)"),
            "looks back only",
        ),
        "everybody": (
            _global(rows="torch.ones_like(is_global)[:, None]"),
            "lets everybody see everything",
        ),
        "no scale": (
            _global().replace("/ d**0.5", ""),
            None,
            "scores that are too large; the message shows the numbers",
        ),
        "first token only": (
            _global().replace(
                "    place =",
                "    is_global = torch.arange(n) < int(is_global.any())\n    place =",
            ),
            None,
            "a fixed place for the global token; the message shows the case",
        ),
        "the library": (
            "\ndef with_global(q, k, v, global_q, global_k, global_v, is_global, one_sided):\n"
            "    return LongformerAttention(q.shape[-1], 1, one_sided=one_sided)(q[None],"
            " is_global[None])[0]\n",
            "do without",
        ),
    },
    "06-block-table": {
        "no copy on write": (_pages(must_copy="False"), "copy a shared page before writing"),
        "copy leaks": (_pages(let_go="pass"), "never gets free"),
        "free leaks": (_pages(drop="pass"), "never get free again"),
        "frees what is shared": (
            _pages(drop="self.users[page] = 0"),
            "still uses: count the users",
        ),
        "counts down only its own": (
            _pages(drop="self.users[page] = 0 if self.users[page] == 1 else self.users[page]"),
            "count down every user",
        ),
        "fork not counted": (_pages(count="pass"), "they count one user only"),
        "table shared": (
            _pages(table="self.tables[twin] = self.tables[seq]"),
            None,
            "one list for two texts; the message shows the first step that differs",
        ),
        "always copies": (
            _pages(must_copy="True"),
            None,
            "a fresh page for each token; the message shows the free pages",
        ),
        "copies the page in front": (
            _pages(copied="[]"),
            None,
            "what stood in the shared page is lost; the message shows the tokens",
        ),
        "RuntimeError": (_pages(error="RuntimeError"), "stopped with"),
        "a page each token": (
            _pages().replace("self.page_size = page_size", "self.page_size = 1"),
            "a page holds page_size",
        ),
        "reads whole pages": (
            _pages(
                copied="list(self.pages[table[-1]])",
                write="self.pages[table[-1]].append(token)",
                read="tokens",
                must_copy="False",
            ),
            None,
            "others' tokens behind its own; the message shows them",
        ),
        "a page too early": (
            _pages()
            .replace(
                "        self.lengths[seq] += 1\n",
                "        self.lengths[seq] += 1\n"
                "        if self.lengths[seq] % self.page_size == 0:\n"
                "            table.append(self.take())\n",
            )
            .replace("if slot == 0:", "if not table:"),
            "wait for the token",
        ),
        "fork copies": (
            _pages(
                table="self.tables[twin] = [self.take() for _ in self.tables[seq]]\n"
                "        for a, b in zip(self.tables[twin], self.tables[seq]):\n"
                "            self.pages[a] = list(self.pages[b])",
                count="pass",
            ),
            "shared until somebody writes",
        ),
        "numbers used again": (
            _pages().replace(
                "seq, self.started = self.started, self.started + 1", "seq = len(self.tables)"
            ),
            None,
            "a number that another text has; the message shows the step",
        ),
        "page taken before the check": (
            _pages().replace(
                "        if 0 not in self.users:",
                "        self.tables[max(self.tables)].append(0)\n"
                "        self.tables[max(self.tables)].pop()\n"
                "        if 0 not in self.users:\n"
                "            for seq in self.lengths:\n"
                "                self.lengths[seq] -= 1\n"
                "                break\n"
                "        if 0 not in self.users:",
            ),
            None,
            "something changed although it failed; the message shows the step",
        ),
        "the library": (
            "\nclass Pages:\n    def __init__(self, n_pages, page_size):\n"
            "        self.cache = PagedCache(PagePool(n_pages, page_size, 1, 1))\n"
            "        self.start = self.cache.add\n",
            "do without",
        ),
    },
    "06-paged-waste": {
        "pages rounded down": (
            _waste(pages="sum(x // page_size for x in lengths)"),
            "filled in part is a page",
        ),
        "end to end": (
            _waste(pages="-(-sum(lengths) // page_size)"),
            "a page belongs to one sequence",
        ),
        "one page more": (
            _waste(pages="sum(x // page_size + 1 for x in lengths)"),
            "one page too many",
        ),
        "as the longest": (
            _waste(pages="len(lengths) * -(-max(lengths) // page_size)"),
            "as long as the longest",
        ),
        "empty end to end": (
            _waste(empty_in_pages="-sum(lengths) % page_size"),
            "a page belongs to one sequence",
        ),
        "the rest": (
            _waste(empty_in_pages="sum(x % page_size for x in lengths)"),
            "not their empty places",
        ),
        "a whole page empty": (
            _waste(empty_in_pages="sum(page_size - x % page_size for x in lengths)"),
            "counts a whole empty page",
        ),
        "filled": (_waste(empty_in_rooms="sum(lengths)"), "the places that are filled"),
        "one room": (_waste(empty_in_rooms="room - sum(lengths)"), "a room of its own"),
        "all rooms": (_waste(empty_in_rooms="room * len(lengths)"), "take away what is filled"),
        "nothing shared": (
            _waste(shared="m * -(-(prompt + new) // page_size)"),
            "its own copy of the prompt",
        ),
        "partial page shared": (
            _waste(shared="-(-prompt // page_size) + m * -(-new // page_size)"),
            "cannot hold several answers",
        ),
        "original kept": (
            _waste(
                shared="-(-prompt // page_size) + m * -(-(prompt % page_size + new) // page_size)"
            ),
            "The last answer to write",
        ),
        "no prompt": (
            _waste(shared="m * -(-(prompt % page_size + new) // page_size)"),
            "the full pages of the prompt",
        ),
        "one answer": (_waste(shared="-(-(prompt + new) // page_size)"), "for a single answer"),
        "the library asked": (
            "\ndef waste(lengths, page_size, room, prompt, new, m):\n"
            "    cache = PagedCache(PagePool(500, page_size, 1, 1))\n"
            "    return {'pages': cache.pool.n_used, 'empty_in_pages': 0, 'empty_in_rooms': 0,"
            " 'shared': 0}\n",
            "do without",
        ),
    },
    "06-what-changes": {
        "all true": (
            "\ndef what_changes():\n    return dict.fromkeys(" + repr(list(KEY)) + ", 'true')\n",
            "right minus wrong",
        ),
        "all false": (
            "\ndef what_changes():\n    return dict.fromkeys(" + repr(list(KEY)) + ", 'false')\n",
            "right minus wrong",
        ),
        "what people say": (
            _says(
                mask_is_cheap="true",
                beyond_is_lost="true",
                half_each_side="true",
                layers_alternate="true",
                same_as_softmax="true",
                linear_is_less="true",
                flash_is_linear="true",
                fewer_bytes="true",
            ),
            "look again at",
        ),
        "booleans": (
            "\ndef what_changes():\n    return dict.fromkeys(" + repr(list(KEY)) + ", True)\n",
            "is asked for",
        ),
        "one wrong": (_says(two_layers="false"), "not every answer is right"),
        "one open": (
            f"\ndef what_changes():\n    return {KEY | {'linear_is_less': None}}\n",
            "not every answer is right",
        ),
        "a list": ("\ndef what_changes():\n    return ['true'] * 14\n", "expected a dictionary"),
    },
}
