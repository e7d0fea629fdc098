"""Known answers to chapter 05: right ones written in many ways, wrong ones that look reasonable.

A right answer must get every point. A wrong one is a source and the words that its author must
see; or a source, None, and the reason why no message can tell more than where the numbers differ.
"""

RIGHT = {
    "05-kv-cache-append": {
        "softmax by hand, positions first": """
def read_on(x, cache, w_q, w_k, w_v, turn):
    t = x.shape[1]
    keys, values = (None, None) if cache is None else cache
    start = 0 if keys is None else keys.size(1)
    where = torch.arange(t) + start
    q = turn(x @ w_q, where)
    new_k = turn(x @ w_k, where)
    keys = new_k if keys is None else torch.cat((keys, new_k), 1)
    values = x @ w_v if values is None else torch.cat((values, x @ w_v), 1)
    scores = q @ keys.transpose(1, 2) / math.sqrt(w_q.shape[1])
    hidden = torch.arange(keys.size(1))[None, :] > where[:, None]
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return weights @ values, (keys, values)
""",
        "token by token": """
def read_on(x, cache, w_q, w_k, w_v, turn):
    outs = []
    if cache is None:
        b = x.shape[0]
        cache = x.new_zeros(b, 0, w_k.shape[1]), x.new_zeros(b, 0, w_v.shape[1])
    keys, values = cache
    for i in range(x.shape[1]):
        token = x[:, i : i + 1]
        at = torch.tensor([keys.shape[1]])
        keys = torch.cat([keys, turn(token @ w_k, at)], dim=1)
        values = torch.cat([values, token @ w_v], dim=1)
        outs.append(dot_product_attention(turn(token @ w_q, at), keys, values))
    return torch.cat(outs, dim=1), (keys, values)
""",
        "torch's attention, a list for a cache": """
def read_on(x, cache, w_q, w_k, w_v, turn):
    old = [] if cache is None else [cache]
    seen = sum(k.shape[1] for k, _ in old)
    positions = torch.arange(seen, seen + x.shape[1])
    k = torch.cat([k for k, _ in old] + [turn(x @ w_k, positions)], dim=1)
    v = torch.cat([v for _, v in old] + [x @ w_v], dim=1)
    q = turn(x @ w_q, positions)
    mask = torch.ones(x.shape[1], k.shape[1]).tril(seen).bool()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), [k, v]
""",
        "room laid out, then filled": """
def read_on(x, cache, w_q, w_k, w_v, turn):
    b, t, _ = x.shape
    seen = 0 if cache is None else cache[0].shape[1]
    k = torch.empty(b, seen + t, w_k.shape[1], dtype=x.dtype)
    v = torch.empty(b, seen + t, w_v.shape[1], dtype=x.dtype)
    if cache is not None:
        k[:, :seen], v[:, :seen] = cache
    positions = torch.arange(seen + t)[seen:]
    k[:, seen:] = turn(x @ w_k, positions)
    v[:, seen:] = x @ w_v
    scores = einsum(turn(x @ w_q, positions), k, "b t d, b s d -> b t s") * w_k.shape[1] ** -0.5
    scores = scores.masked_fill(~causal_mask(t, seen + t), float("-inf"))
    return einsum(scores.softmax(dim=-1), v, "b t s, b s d -> b t d"), (k, v)
""",
    },
    "05-incremental-equals-full": {
        "recursion": """
def agrees(full, step, x):
    want = full(x)
    n = x.shape[1]
    def read(start, cache):
        if start == n:
            return True
        for end in range(start + 1, n + 1):
            out, after = step(x[:, start:end], cache)
            right = want[:, start:end]
            if out.shape != right.shape:
                return False
            if not bool(torch.all((out - right).abs() <= 1e-4)):
                return False
            if not read(end, after):
                return False
        return True
    return read(0, None)
""",
        "bits of a number": """
def agrees(full, step, x):
    whole, n = full(x), x.shape[1]
    for bits in range(2 ** (n - 1)):
        lengths, length = [], 1
        for i in range(n - 1):
            if bits >> i & 1:
                lengths.append(length)
                length = 1
            else:
                length += 1
        lengths.append(length)
        cache, parts = None, []
        for piece in torch.split(x, lengths, dim=1):
            part, cache = step(piece, cache)
            parts.append(part)
        parts = torch.cat(parts, 1)
        if parts.shape != whole.shape:
            return False
        if not torch.allclose(parts, whole, rtol=0.0, atol=1e-4):
            return False
    return True
""",
        "all cuts, worst difference": """
def agrees(full, step, x):
    n = x.shape[1]
    whole = full(x)
    worst = 0.0
    for r in range(n):
        for cuts in itertools.combinations(range(1, n), r):
            edges = [0, *cuts, n]
            cache, outs = None, []
            for a, b in itertools.pairwise(edges):
                out, cache = step(x[:, a:b].clone(), cache)
                outs += [out]
            joined = torch.cat(outs, dim=1)
            if joined.shape != whole.shape or joined.isnan().any():
                return False
            worst = max(worst, (joined - whole).abs().max().item())
    return worst <= 1e-4
""",
    },
    "05-kv-cache-bytes": {
        "step by step": """
def cache_size(b, s, n_layers, n_heads, n_kv_heads, d_head, bits):
    one_layer = n_kv_heads * d_head + n_kv_heads * d_head
    numbers = one_layer * n_layers
    bytes_per_token = numbers * bits / 8
    return {
        "numbers_per_token": numbers,
        "bytes": int(bytes_per_token * b * s),
        "times_smaller": int(n_heads / n_kv_heads),
        "longest": int(2**33 // (bytes_per_token * b)),
    }
""",
        "a table of tokens": """
def cache_size(b, s, n_layers, n_heads, n_kv_heads, d_head, bits):
    def size(tokens, heads):
        return sum(tokens * heads * d_head * bits // 8 for _ in range(n_layers) for _ in "kv")
    small, large = size(b, n_kv_heads), size(b, n_heads)
    return dict(
        numbers_per_token=size(1, n_kv_heads) * 8 // bits,
        bytes=s * small,
        times_smaller=large // small,
        longest=8 * 1024**3 // small,
    )
""",
    },
    "05-decode-roofline": {
        "step by step": """
def roofline(b, t, s, n_heads, n_kv_heads, d_head, bits, peak, bandwidth):
    scores = b * n_heads * t * s
    flops = 2 * scores * d_head + 2 * scores * d_head
    keys = b * n_kv_heads * s * d_head
    moved = int((keys + keys) * (bits / 8))
    arithmetic, reading = flops / peak, moved / bandwidth
    if arithmetic > reading:
        seconds, decides = arithmetic, "compute"
    else:
        seconds, decides = reading, "memory"
    return {"flops": flops, "bytes": moved, "intensity": flops / moved,
            "seconds": seconds, "decides": decides}
""",
        "by the intensity": """
def roofline(b, t, s, n_heads, n_kv_heads, d_head, bits, peak, bandwidth):
    intensity = 2 * t * n_heads / n_kv_heads * 8 / bits
    moved = b * s * d_head * n_kv_heads * bits // 4
    speed = min(peak, intensity * bandwidth)
    flops = 4 * b * t * s * n_heads * d_head
    return {
        "flops": flops,
        "bytes": moved,
        "intensity": intensity,
        "seconds": flops / speed,
        "decides": "memory" if intensity < peak / bandwidth else "compute",
    }
""",
    },
    "05-grouped-query-attention": {
        "groups by broadcasting": """
def grouped(q, k, v, mask=None):
    b, h, t, d = q.shape
    g, s = k.shape[1], k.shape[2]
    q = q.reshape(b, g, h // g, t, d)
    if mask is not None:
        mask = mask.expand(b, h, t, s).reshape(b, g, h // g, t, s)
    n = h // g
    k = k[:, :, None].expand(-1, -1, n, -1, -1)
    v = v[:, :, None].expand(-1, -1, n, -1, -1)
    return dot_product_attention(q, k, v, mask).reshape(b, h, t, v.shape[-1])
""",
        "a loop over query heads": """
def grouped(q, k, v, mask=None):
    b, h, t, _ = q.shape
    g, s = k.shape[1:3]
    masks = None if mask is None else torch.broadcast_to(mask, (b, h, t, s))
    heads = []
    for i in range(h):
        j = i // (h // g)
        own = None if masks is None else masks[:, i]
        heads.append(dot_product_attention(q[:, i], k[:, j], v[:, j], own))
    return torch.stack(heads, dim=1)
""",
        "einsum, softmax by hand": """
def grouped(q, k, v, mask=None):
    grouped_q = rearrange(q, "b (g n) t d -> b g n t d", g=k.shape[1])
    scores = torch.einsum("bgntd,bgsd->bgnts", grouped_q, k) / math.sqrt(q.shape[-1])
    scores = scores.flatten(1, 2)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num()
    weights = weights.unflatten(1, (k.shape[1], -1))
    return torch.einsum("bgnts,bgsd->bgntd", weights, v).flatten(1, 2)
""",
        "einops repeat": """
def grouped(q, k, v, mask=None):
    n = q.size(1) // k.size(1)
    k, v = (repeat(x, "b g s d -> b (g n) s d", n=n) for x in (k, v))
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    if mask is None:
        return F.softmax(scores, -1) @ v
    low = torch.finfo(scores.dtype).min
    return (F.softmax(torch.where(mask, scores, low), -1) * mask) @ v
""",
        "indexed heads": """
def grouped(q, k, v, mask=None):
    h, g = q.shape[1], k.shape[1]
    group = torch.arange(h) * g // h
    return dot_product_attention(q, k[:, group], v[:, group], mask)
""",
    },
    "05-mha-to-gqa": {
        "reshape": """
def pooled(w, n_heads, n_kv_heads):
    d_model, width = w.shape
    d_head = width // n_heads
    w = w.reshape(d_model, n_kv_heads, n_heads // n_kv_heads, d_head)
    return w.mean(2).reshape(d_model, n_kv_heads * d_head)
""",
        "a loop": """
def pooled(w, n_heads, n_kv_heads):
    heads = w.chunk(n_heads, dim=1)
    n = n_heads // n_kv_heads
    return torch.cat([sum(heads[j * n : j * n + n]) / n for j in range(n_kv_heads)], dim=1)
""",
        "a matrix that averages": """
def pooled(w, n_heads, n_kv_heads):
    n, d = n_heads // n_kv_heads, w.shape[1] // n_heads
    average = torch.zeros(n_heads * d, n_kv_heads * d, dtype=w.dtype)
    for i in range(n_heads):
        for column in range(d):
            average[i * d + column, (i // n) * d + column] = 1 / n
    return w @ average
""",
        "stack and mean": """
def pooled(w, n_heads, n_kv_heads):
    heads = torch.stack(w.split(w.shape[1] // n_heads, dim=-1))
    groups = heads.view(n_kv_heads, n_heads // n_kv_heads, *heads.shape[1:]).mean(dim=1)
    return torch.cat(list(groups), dim=-1)
""",
    },
    "05-latent-attention": {
        "broadcasting": """
def from_latents(q, q_turned, latent, k_turned, w_uk, w_uv):
    k, v = latent.unsqueeze(1) @ w_uk, latent.unsqueeze(1) @ w_uv
    scores = q @ k.mT + q_turned @ k_turned.unsqueeze(1).mT
    scores = scores / math.sqrt(q.size(-1) + q_turned.size(-1))
    t, s = scores.shape[-2:]
    later = torch.ones(t, s, dtype=torch.bool).triu(s - t + 1)
    return scores.masked_fill(later, float("-inf")).softmax(-1) @ v
""",
        "a loop over heads": """
def from_latents(q, q_turned, latent, k_turned, w_uk, w_uv):
    mask = causal_mask(q.shape[2], latent.shape[1])
    outs = []
    for i in range(q.shape[1]):
        k = torch.cat([latent @ w_uk[i], k_turned], dim=-1)
        long_q = torch.cat([q[:, i], q_turned[:, i]], dim=-1)
        outs.append(dot_product_attention(long_q, k, latent @ w_uv[i], mask))
    return torch.stack(outs, dim=1)
""",
        "absorbed already": """
def from_latents(q, q_turned, latent, k_turned, w_uk, w_uv):
    kept = torch.cat([latent, k_turned], dim=-1)[:, None]
    scores = torch.cat([q @ w_uk.mT, q_turned], dim=-1) @ kept.mT
    scores = scores * (q.shape[-1] + q_turned.shape[-1]) ** -0.5
    mask = causal_mask(*scores.shape[-2:])
    return (scores.masked_fill(~mask, -torch.inf).softmax(-1) @ latent[:, None]) @ w_uv
""",
        "torch's attention": """
def from_latents(q, q_turned, latent, k_turned, w_uk, w_uv):
    h = q.shape[1]
    k = torch.einsum("bsc,hcd->bhsd", latent, w_uk)
    v = torch.einsum("bsc,hcd->bhsd", latent, w_uv)
    k = torch.cat([k, k_turned[:, None].expand(-1, h, -1, -1)], -1)
    q = torch.cat([q, q_turned], -1)
    mask = causal_mask(q.shape[2], k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
""",
    },
    "05-absorb": {
        "einsum": """
def absorbed(q, q_turned, ask, fetch, w_uk, w_uv):
    width = q.shape[-1] + q_turned.shape[-1]
    queries = torch.einsum("bhtd,hcd->bhtc", q, w_uk)
    weights = torch.softmax(ask(torch.cat((queries, q_turned), -1)) / math.sqrt(width), -1)
    return torch.einsum("bhtc,hcd->bhtd", fetch(weights), w_uv)
""",
        "divided before it asks": """
def absorbed(q, q_turned, ask, fetch, w_uk, w_uv):
    root = (q.shape[-1] + q_turned.shape[-1]) ** 0.5
    long = torch.cat([q @ w_uk.transpose(1, 2), q_turned], dim=-1) / root
    return fetch(F.softmax(ask(long), dim=-1)) @ w_uv
""",
        "a loop over heads": """
def absorbed(q, q_turned, ask, fetch, w_uk, w_uv):
    h = q.shape[1]
    content = torch.stack([q[:, i] @ w_uk[i].T for i in range(h)], dim=1)
    scores = ask(torch.cat([content, q_turned], dim=3))
    scores = scores / (q.shape[3] + q_turned.shape[3]) ** 0.5
    mixed = fetch(scores.softmax(3))
    return torch.stack([mixed[:, i] @ w_uv[i] for i in range(h)], dim=1)
""",
        "content and position asked apart": """
def absorbed(q, q_turned, ask, fetch, w_uk, w_uv):
    content = q @ w_uk.mT
    by_content = ask(torch.cat([content, 0 * q_turned], dim=-1))
    by_position = ask(torch.cat([0 * content, q_turned], dim=-1))
    scores = (by_content + by_position) / (q.shape[-1] + q_turned.shape[-1]) ** 0.5
    return fetch(scores.softmax(dim=-1)) @ w_uv
""",
    },
}


def _body(head: str, body: str) -> str:
    return f"\n{head}\n    " + body.replace("\n", "\n    ") + "\n"


READ = """seen = 0 if cache is None else cache[0].shape[1]
positions = {positions}
q, k, v = {q}, {k}, {v}
if cache is not None:
    k, v = {joined}
mask = {mask}
{out}"""


def _read(
    positions: str = "torch.arange(seen, seen + x.shape[1])",
    q: str = "turn(x @ w_q, positions)",
    k: str = "turn(x @ w_k, positions)",
    v: str = "x @ w_v",
    joined: str = "torch.cat([cache[0], k], dim=1), torch.cat([cache[1], v], dim=1)",
    mask: str = "causal_mask(q.shape[1], k.shape[1])",
    out: str = "return dot_product_attention(q, k, v, mask), (k, v)",
) -> str:
    body = READ.format(positions=positions, q=q, k=k, v=v, joined=joined, mask=mask, out=out)
    return _body("def read_on(x, cache, w_q, w_k, w_v, turn):", body)


AGREES = """want, n = full(x), x.shape[1]
for {ways}:
    cache, outs = None, []
    for piece in x.split(way, dim=1):
        out, {cache} = step(piece, cache)
        outs.append(out)
    got = torch.cat(outs, dim=1)
    if {differ}:
        return False
return True"""
EVERY_WAY = (
    "way in [[b - a for a, b in itertools.pairwise([0, *cuts, n])] "
    "for r in range(n) for cuts in itertools.combinations(range(1, n), r)]"
)


def _agrees(
    ways: str = EVERY_WAY,
    differ: str = "got.shape != want.shape or not ((got - want).abs() <= 1e-4).all()",
    cache: str = "cache",
) -> str:
    body = AGREES.format(ways=ways, differ=differ, cache=cache)
    return _body("def agrees(full, step, x):", body)


SIZE = """
def cache_size(b, s, n_layers, n_heads, n_kv_heads, d_head, bits):
    numbers = {numbers}
    return {{
        "numbers_per_token": numbers,
        "bytes": {size},
        "times_smaller": {smaller},
        "longest": {longest},
    }}
"""


def _size(
    numbers: str = "2 * n_layers * n_kv_heads * d_head",
    size: str = "b * s * numbers * bits // 8",
    smaller: str = "n_heads // n_kv_heads",
    longest: str = "2**33 * 8 // (b * numbers * bits)",
) -> str:
    return SIZE.format(numbers=numbers, size=size, smaller=smaller, longest=longest)


BOUND = """
def roofline(b, t, s, n_heads, n_kv_heads, d_head, bits, peak, bandwidth):
    flops = {flops}
    moved = {moved}
    arithmetic, reading = flops / peak, moved / bandwidth
    return {{
        "flops": flops,
        "bytes": moved,
        "intensity": {intensity},
        "seconds": {seconds},
        "decides": {decides},
    }}
"""


def _bound(
    flops: str = "4 * b * n_heads * t * s * d_head",
    moved: str = "2 * b * n_kv_heads * s * d_head * bits // 8",
    intensity: str = "flops / moved",
    seconds: str = "max(arithmetic, reading)",
    decides: str = '"compute" if arithmetic > reading else "memory"',
) -> str:
    return BOUND.format(
        flops=flops, moved=moved, intensity=intensity, seconds=seconds, decides=decides
    )


GROUPED = """n = q.shape[1] // k.shape[1]
k, v = {spread}
scores = q @ k.mT / {divisor}
if mask is not None:
    scores = scores.masked_fill({hidden}, {fill})
{after}"""


def _grouped(
    spread: str = "k.repeat_interleave(n, dim=1), v.repeat_interleave(n, dim=1)",
    divisor: str = "q.shape[-1] ** 0.5",
    hidden: str = "~mask",
    fill: str = 'float("-inf")',
    after: str = "return scores.softmax(dim=-1).nan_to_num() @ v",
) -> str:
    body = GROUPED.format(spread=spread, divisor=divisor, hidden=hidden, fill=fill, after=after)
    return _body("def grouped(q, k, v, mask=None):", body)


def _pooled(body: str) -> str:
    head = "n, d_head = n_heads // n_kv_heads, w.shape[1] // n_heads\n"
    return _body("def pooled(w, n_heads, n_kv_heads):", head + body)


LATENT = """k, v = {k}, {v}
scores = {scores}
t, s = q.shape[2], latent.shape[1]
return scores.masked_fill(~{mask}, float("-inf")).softmax(dim=-1).nan_to_num() @ v"""


def _latent(
    k: str = "latent[:, None] @ w_uk",
    v: str = "latent[:, None] @ w_uv",
    scores: str = "(q @ k.mT + q_turned @ k_turned[:, None].mT) "
    "/ (q.shape[-1] + q_turned.shape[-1]) ** 0.5",
    mask: str = "causal_mask(t, s)",
) -> str:
    body = LATENT.format(k=k, v=v, scores=scores, mask=mask)
    return _body("def from_latents(q, q_turned, latent, k_turned, w_uk, w_uv):", body)


ABSORB = """long = torch.cat({parts}, dim=-1)
scores = ask(long) / ({width}) ** 0.5
weights = {weights}
return {out}"""


def _absorb(
    parts: str = "[q @ w_uk.mT, q_turned]",
    width: str = "q.shape[-1] + q_turned.shape[-1]",
    weights: str = "scores.softmax(dim=-1)",
    out: str = "fetch(weights) @ w_uv",
) -> str:
    body = ABSORB.format(parts=parts, width=width, weights=weights, out=out)
    return _body("def absorbed(q, q_turned, ask, fetch, w_uk, w_uv):", body)


WRONG = {
    "05-kv-cache-append": {
        "positions from 0": (
            _read(positions="torch.arange(x.shape[1])"),
            "counts positions from 0 at every call",
        ),
        "keys turned again": (
            _read(
                k="x @ w_k",
                out="k = turn(k, torch.arange(k.shape[1]))\n"
                "return dot_product_attention(q, k, v, mask), (k, v)",
            ),
            "a second time",
        ),
        "old keys turned again": (
            _read(
                joined="torch.cat([turn(cache[0], torch.arange(seen)), k], dim=1), "
                "torch.cat([cache[1], v], dim=1)"
            ),
            "a second time",
        ),
        "keys kept unturned": (
            _read(
                k="x @ w_k",
                out="turned = turn(k, torch.arange(k.shape[1]))\n"
                "return dot_product_attention(q, turned, v, mask), (k, v)",
            ),
            "keys are turned as well",
        ),
        "keys not turned": (_read(k="x @ w_k"), "keys are turned as well"),
        "queries not turned": (_read(q="x @ w_q"), "turns the keys only"),
        "values turned, too": (_read(v="turn(x @ w_v, positions)"), "turns the values"),
        "mask top left": (
            _read(mask="torch.ones(q.shape[1], k.shape[1]).tril().bool()"),
            "the last t of the s tokens",
        ),
        "is_causal": (
            _read(out="return F.scaled_dot_product_attention(q, k, v, is_causal=True), (k, v)"),
            "the last t of the s tokens",
        ),
        "no mask": (
            _read(out="return dot_product_attention(q, k, v), (k, v)"),
            "hides nothing",
        ),
        "mask only at first": (
            _read(mask="causal_mask(q.shape[1]) if cache is None else None"),
            "first piece is right",
        ),
        "own key hidden": (
            _read(
                mask="torch.ones(q.shape[1], k.shape[1]).tril(k.shape[1] - q.shape[1] - 1).bool()"
            ),
            "hides each token from itself",
        ),
        "newest in front": (
            _read(joined="torch.cat([k, cache[0]], dim=1), torch.cat([v, cache[1]], dim=1)"),
            "in front of the old",
        ),
        "cache forgotten": (_read(joined="k, v"), "the new tokens only"),
        "values not kept": (
            _read(joined="torch.cat([cache[0], k], dim=1), torch.cat([cache[1][:, :0], v], dim=1)"),
            "stopped with",
        ),
        "queries kept as well": (
            _body(
                "def read_on(x, cache, w_q, w_k, w_v, turn):",
                "seen = 0 if cache is None else cache[0].shape[1]\n"
                "positions = torch.arange(seen, seen + x.shape[1])\n"
                "q, k, v = turn(x @ w_q, positions), turn(x @ w_k, positions), x @ w_v\n"
                "if cache is not None:\n"
                "    k, v, q = (torch.cat([a, b], dim=1) for a, b in zip(cache, (k, v, q)))\n"
                "return dot_product_attention(q, k, v, causal_mask(k.shape[1])), (k, v, q)",
            ),
            "2 items",
        ),
        "only the output": (
            _read(out="return dot_product_attention(q, k, v, mask)"),
            None,
            "what happens first depends on the batch: a tensor is unpacked, or refuses",
        ),
        "the library": (
            _read(out="return ContiguousCache(1, 1, 1, 1), (k, v)"),
            "do without",
        ),
    },
    "05-incremental-equals-full": {
        "always yes": ("\ndef agrees(full, step, x):\n    return True\n", None, "no test at all"),
        "one by one": (_agrees(ways="way in [[1] * n]"), "token by token only"),
        "at once only": (_agrees(ways="way in [[n]]"), "in one piece only"),
        "one cut": (
            _agrees(ways="way in [[i, n - i] for i in range(1, n)]"),
            "cuts once only",
        ),
        "a prompt, then single tokens": (
            _agrees(ways="way in [[i] + [1] * (n - i) for i in range(1, n + 1)]"),
            "single tokens",
        ),
        "pieces of one length": (
            _agrees(
                ways="way in [[size] * (n // size) + [n % size] * (n % size > 0) "
                "for size in range(1, n + 1)]"
            ),
            "pieces of one length",
        ),
        "three pieces at most": (
            _agrees(
                ways="way in [[i, n - i] for i in range(1, n)] + [[n]] "
                "+ [[i, j, n - i - j] for i in range(1, n) for j in range(1, n - i)]"
            ),
            "three pieces at most",
        ),
        "the sum of the differences": (
            _agrees(differ="got.shape != want.shape or not (got - want).sum().abs() <= 1e-4"),
            "some cancel",
        ),
        "norms compared": (
            _agrees(
                differ="got.shape != want.shape or not (got.norm() - want.norm()).abs() <= 1e-4"
            ),
            None,
            "rows that change places keep the norm; the message names the cache",
        ),
        "a relative tolerance": (
            _agrees(differ="got.shape != want.shape or not torch.allclose(got, want, atol=1e-4)"),
            None,
            "only numbers near 100 show it; the message names the cache",
        ),
        "the last output only": (
            _agrees(differ="not ((got - want)[:, -1].abs() <= 1e-4).all()").replace(
                "got = torch.cat(outs, dim=1)",
                "got = torch.cat(outs, dim=1)[:, -n:]",
            ),
            "the last output only",
        ),
        "first sequence": (
            _agrees(differ="got.shape != want.shape or not ((got - want)[0].abs() <= 1e-4).all()"),
            "first sequence of the batch",
        ),
        "cache dropped": (_agrees(cache="_"), "starts every piece with None"),
        "to the last bit": (
            _agrees(differ="got.shape != want.shape or not torch.equal(got, want)"),
            "calls rounding a fault",
        ),
        "a wide tolerance": (
            _agrees(differ="got.shape != want.shape or not ((got - want).abs() <= 1e-2).all()"),
            "lets small faults pass",
        ),
        "NaN passes": (
            _agrees(differ="got.shape != want.shape or ((got - want).abs() > 1e-4).any()"),
            "lets NaN pass",
        ),
        "signed differences": (
            _agrees(differ="got.shape != want.shape or not ((got - want) <= 1e-4).all()"),
            None,
            "an output that is too small passes; the message names the cache",
        ),
        "the mean difference": (
            _agrees(differ="got.shape != want.shape or not (got - want).abs().mean() <= 1e-4"),
            "mean difference",
        ),
        "shapes only": (
            _agrees(differ="got.shape != want.shape"),
            None,
            "numbers are not compared; the message names the first cache that slips through",
        ),
        "shapes not compared": (
            _agrees(differ="not ((got - want).abs() <= 1e-4).all()"),
            "stopped with",
        ),
        "the other way round": (
            _agrees()
            .replace("return False", "return None")
            .replace("return True", "return False")
            .replace("return None", "return True"),
            "opposite answer",
        ),
        "one cache for all ways": (
            _agrees()
            .replace("cache, outs = None, []", "outs = []")
            .replace("want, n = full(x), x.shape[1]", "want, n, cache = full(x), x.shape[1], None"),
            None,
            "the second way starts with the cache of the first: right caches are accused",
        ),
    },
    "05-kv-cache-bytes": {
        "keys only": (_size("n_layers * n_kv_heads * d_head"), "a key and a value"),
        "queries, too": (
            _size("n_layers * (n_heads + 2 * n_kv_heads) * d_head"),
            "counts queries as well",
        ),
        "three of a kind": (_size("3 * n_layers * n_kv_heads * d_head"), "are two"),
        "query heads": (
            _size("2 * n_layers * n_heads * d_head"),
            "only heads of keys and values",
        ),
        "one layer": (_size("2 * n_kv_heads * d_head"), "This is one layer"),
        "bits for bytes": (
            _size(size="b * s * numbers * bits", longest="2**33 // (b * numbers * bits)"),
            "a byte has 8 bits",
        ),
        "two bytes always": (
            _size(size="2 * b * s * numbers", longest="2**32 // (b * numbers)"),
            "16 bits a number",
        ),
        "one sequence": (
            _size(size="s * numbers * bits // 8", longest="2**33 * 8 // (numbers * bits)"),
            "of one sequence",
        ),
        "room for one": (
            _size(longest="2**33 * 8 // (numbers * bits)"),
            "all the room to one sequence",
        ),
        "GB for GiB": (
            _size(longest="8 * 10**9 * 8 // (b * numbers * bits)"),
            "8 GiB are 2**33",
        ),
        "upside down": (_size(smaller="n_kv_heads / n_heads"), "upside down"),
        "d_head of a group": (
            _size("2 * n_layers * n_kv_heads * d_head * n_kv_heads // n_heads"),
            None,
            "heads divided twice: the right number is kept back here",
        ),
        "rounded up": (
            _size(longest="math.ceil(2**33 * 8 / (b * numbers * bits))"),
            None,
            "one token too many, which does not fit: the right number is kept back here",
        ),
        "a key missing": (
            _size().replace('        "longest": 2**33 * 8 // (b * numbers * bits),\n', ""),
            "missing: longest",
        ),
        "measured": (
            _size(size="n_layers * ContiguousCache(b, n_kv_heads, s, d_head).nbytes"),
            "do without",
        ),
    },
    "05-decode-roofline": {
        "one FLOP": (_bound("2 * b * n_heads * t * s * d_head"), "a multiply-add is 2"),
        "heads of keys do the work": (
            _bound("4 * b * n_kv_heads * t * s * d_head"),
            "all h query heads",
        ),
        "every head reads": (
            _bound(moved="2 * b * n_heads * s * d_head * bits // 8"),
            "share one reading",
        ),
        "every query reads": (
            _bound(moved="2 * b * n_kv_heads * t * s * d_head * bits // 8"),
            "the t queries share one reading",
        ),
        "batch shares": (
            _bound(moved="2 * n_kv_heads * s * d_head * bits // 8"),
            "every sequence has its own",
        ),
        "keys only": (
            _bound(moved="b * n_kv_heads * s * d_head * bits // 8"),
            "a key and a value",
        ),
        "bits for bytes": (
            _bound(moved="2 * b * n_kv_heads * s * d_head * bits"),
            "a byte has 8 bits",
        ),
        "added": (_bound(seconds="arithmetic + reading"), "adds the two times"),
        "the shorter": (_bound(seconds="min(arithmetic, reading)"), "takes the shorter time"),
        "swapped": (
            _bound(decides='"memory" if arithmetic > reading else "compute"'),
            "in each other's place",
        ),
        "bytes a FLOP": (_bound(intensity="moved / flops"), "FLOPs per byte"),
        "always memory": (
            _bound(decides='"memory"'),
            None,
            "right in most cases; the message shows the case",
        ),
        "new tokens only": (
            _bound("4 * b * n_heads * t * t * d_head"),
            None,
            "queries against new keys only: right numbers are kept back here",
        ),
        "counted": (
            _bound("FlopCounterMode(display=False).get_total_flops()"),
            "do without",
        ),
    },
    "05-grouped-query-attention": {
        "repeat": (
            _grouped(spread="k.repeat(1, n, 1, 1), v.repeat(1, n, 1, 1)"),
            "neighbours share",
        ),
        "einops the wrong way round": (
            _grouped(spread='(repeat(x, "b g s d -> b (n g) s d", n=n) for x in (k, v))'),
            "neighbours share",
        ),
        "keys repeated": (
            _grouped(spread="k.repeat(1, n, 1, 1), v.repeat_interleave(n, dim=1)"),
            "The values are right",
        ),
        "head 0 for all": (
            _grouped(spread="(x[:, :1].expand(-1, q.shape[1], -1, -1) for x in (k, v))"),
            "head 0 of keys and values",
        ),
        "heads averaged": (
            _grouped(
                spread="(x.mean(1, keepdim=True).expand(-1, q.shape[1], -1, -1) for x in (k, v))"
            ),
            "averages the heads",
        ),
        "queries averaged": (
            _grouped().replace(
                "scores = q",
                "b, h, t, d = q.shape\n"
                "    q = q.reshape(b, h // n, n, t, d).mean(2).repeat_interleave(n, dim=1)\n"
                "    scores = q",
            ),
            "every query head asks for itself",
        ),
        "unscaled": (_grouped(divisor="1"), "without dividing"),
        "divided by d_head": (_grouped(divisor="q.shape[-1]"), "divided by d_head"),
        "root of d_value": (_grouped(divisor="v.shape[-1] ** 0.5"), "sqrt(d_value)"),
        "mask ignored": (_grouped(hidden="~mask & False"), "without the mask"),
        "mask inverted": (_grouped(hidden="mask"), "the other way round"),
        "NaN rows": (
            _grouped(after="return scores.softmax(dim=-1) @ v"),
            "gives NaN where a query sees nothing",
        ),
        "uniform rows": (
            _grouped(
                fill="torch.finfo(scores.dtype).min", after="return scores.softmax(dim=-1) @ v"
            ),
            "the same weight where a query sees nothing",
        ),
        "broadcast and hope": (
            _body(
                "def grouped(q, k, v, mask=None):",
                "return dot_product_attention(q, k, v, mask)",
            ),
            "stopped with",
        ),
        "groups left apart": (
            _body(
                "def grouped(q, k, v, mask=None):",
                'q = rearrange(q, "b (g n) t d -> b g (n t) d", g=k.shape[1])\n'
                "return dot_product_attention(q, k, v)",
            ),
            "expected shape",
        ),
        "cut off": (
            _grouped(after="return (scores.softmax(dim=-1).nan_to_num() @ v).detach()"),
            "no gradient comes back",
        ),
        "torch's switch": (
            _grouped(after="return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)"),
            "do without",
        ),
    },
    "05-mha-to-gqa": {
        "heads apart": (
            _pooled("return w.reshape(len(w), n, n_kv_heads, d_head).mean(1).flatten(1)"),
            "heads that stand apart",
        ),
        "summed": (
            _pooled("return w.reshape(len(w), n_kv_heads, n, d_head).sum(2).flatten(1)"),
            "the sum of each group",
        ),
        "the first of each": (
            _pooled("return w.reshape(len(w), n_kv_heads, n, d_head)[:, :, 0].flatten(1)"),
            "the first head of each group",
        ),
        "the last of each": (
            _pooled("return w.reshape(len(w), n_kv_heads, n, d_head)[:, :, -1].flatten(1)"),
            "the last head of each group",
        ),
        "neighbouring columns": (
            _pooled("return w.reshape(len(w), n_kv_heads * d_head, n).mean(2)"),
            "averages neighbouring columns",
        ),
        "first heads": (
            _pooled("return w[:, : n_kv_heads * d_head]"),
            "drops the rest",
        ),
        "repeated": (
            _pooled(
                "w = w.reshape(len(w), n_kv_heads, n, d_head).mean(2)\n"
                "return w.repeat_interleave(n, dim=1).flatten(1)"
            ),
            "once for every old head",
        ),
        "rows pooled": (
            _pooled("return w.T.reshape(n_kv_heads, n, d_head, -1).mean(1).reshape(-1, len(w))"),
            "expected shape",
        ),
        "over the columns of a head": (
            _pooled("return w.reshape(len(w), n_kv_heads, n, d_head).mean(3).flatten(1)"),
            "the pooled projection",
        ),
        "not flattened": (
            _pooled("return w.reshape(len(w), n_kv_heads, n, d_head).mean(2)"),
            "expected 2 axes",
        ),
        "the median": (
            _pooled("return w.reshape(len(w), n_kv_heads, n, d_head).median(2).values.flatten(1)"),
            None,
            "a middle that is no average; the message shows where it differs",
        ),
        "the library": (
            _pooled("return pool_heads(w.T, n_heads, n_kv_heads).T"),
            "do without",
        ),
    },
    "05-latent-attention": {
        "root of d_head": (
            _latent(scores="(q @ k.mT + q_turned @ k_turned[:, None].mT) / q.shape[-1] ** 0.5"),
            "divides by sqrt(d_head)",
        ),
        "root of the kept width": (
            _latent(
                scores="(q @ k.mT + q_turned @ k_turned[:, None].mT)"
                " / (latent.shape[-1] + k_turned.shape[-1]) ** 0.5"
            ),
            "the keys are d_head + d_rope wide",
        ),
        "unscaled": (
            _latent(scores="q @ k.mT + q_turned @ k_turned[:, None].mT"),
            "without dividing",
        ),
        "each by its own root": (
            _latent(
                scores="q @ k.mT / q.shape[-1] ** 0.5"
                " + q_turned @ k_turned[:, None].mT / q_turned.shape[-1] ** 0.5"
            ),
            "each part by its own root",
        ),
        "no position": (
            _latent(scores="q @ k.mT / (q.shape[-1] + q_turned.shape[-1]) ** 0.5"),
            "leaves the position out",
        ),
        "position alone": (
            _latent(
                scores="q_turned @ k_turned[:, None].mT / (q.shape[-1] + q_turned.shape[-1]) ** 0.5"
            ),
            "scores by position alone",
        ),
        "no position, its own root": (
            _latent(scores="q @ k.mT / q.shape[-1] ** 0.5"),
            None,
            "two mistakes at once; the message shows where the numbers differ",
        ),
        "keys for values": (_latent(v="latent[:, None] @ w_uk"), "values are made with w_uv"),
        "head 0's matrices": (
            _latent("latent[:, None] @ w_uk[0]", "latent[:, None] @ w_uv[0]"),
            "matrices of head 0",
        ),
        "no mask": (
            _latent(mask="torch.ones(t, s, dtype=torch.bool)"),
            "without the mask",
        ),
        "top left": (
            _latent(mask="torch.ones(t, s).tril().bool()"),
            "the last t of the s tokens",
        ),
        "own key hidden": (
            _latent(mask="torch.ones(t, s).tril(s - t - 1).bool()"),
            "hides each token from itself",
        ),
        "latents for values": (
            _latent(v="latent[:, None]"),
            None,
            "the widths may agree or not: a shape or numbers, as the sizes have it",
        ),
        "the two mixed apart": (
            _latent().replace(
                "return scores",
                "root = (q.shape[-1] + q_turned.shape[-1]) ** 0.5\n"
                "    position = q_turned @ k_turned[:, None].mT / root\n"
                "    position = position.masked_fill(~causal_mask(t, s), float('-inf'))\n"
                "    scores = (q @ k.mT / root).masked_fill(~causal_mask(t, s), float('-inf'))\n"
                "    return (scores.softmax(-1) + position.softmax(-1)) / 2 @ v\n"
                "    return scores",
            ),
            None,
            "two softmaxes averaged; the message shows where the numbers differ",
        ),
        "the library": (
            _latent(k="LatentAttention"),
            "do without",
        ),
    },
    "05-absorb": {
        "root of the long width": (
            _absorb(width="long.shape[-1]"),
            "the long query's width",
        ),
        "root of d_head": (_absorb(width="q.shape[-1]"), "divides by sqrt(d_head)"),
        "unscaled": (_absorb(width="1"), "without dividing"),
        "not transposed": (_absorb(parts="[q @ w_uk, q_turned]"), "by its transpose"),
        "as it is": (_absorb(parts="[q, q_turned]"), "projected to the latent's width"),
        "w_uv asks": (_absorb(parts="[q @ w_uv.mT, q_turned]"), "keys are made with w_uk"),
        "position first": (_absorb(parts="[q_turned, q @ w_uk.mT]"), "in front"),
        "no position": (
            _absorb(parts="[q @ w_uk.mT, torch.zeros_like(q_turned)]"),
            "leaves the position out",
        ),
        "no softmax": (_absorb(weights="scores"), "make shares"),
        "w_uk hands over": (_absorb(out="fetch(weights) @ w_uk"), "values are made with w_uv"),
        "latents returned": (_absorb(out="fetch(weights)"), "still has to make values"),
        "over the heads": (
            _absorb(weights="scores.softmax(dim=1)"),
            None,
            "a softmax over the wrong axis; the message shows where the numbers differ",
        ),
        "w_uv transposed": (
            _absorb(out="fetch(weights) @ w_uv.mT"),
            None,
            "another matrix where widths agree, a crash where they do not",
        ),
        "asked without position": (
            _absorb(parts="[q @ w_uk.mT]"),
            "stopped with",
        ),
        "the library": (
            _absorb(out="LatentAttention"),
            "do without",
        ),
    },
}
