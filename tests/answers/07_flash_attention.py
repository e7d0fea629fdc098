"""Known answers to chapter 07: right ones written in many ways, wrong ones that look reasonable.

A right answer must get every point. A wrong one is a source and the words that its author must
see; or a source, None, and the reason why no message can tell more than where the numbers differ.
"""

MEET = """
def meet(m, l, scores):
    best = scores.amax(dim=1)
    new = {new}
    safe = torch.where(new == -math.inf, torch.zeros_like(new), new)
    return new, {factor} * l + {fresh}.sum(dim=1)
"""
RIGHT_MEET = {
    "new": "torch.maximum(m, best)",
    "factor": "(m - safe).exp()",
    "fresh": "(scores - safe[:, None]).exp()",
}

MERGE = """
def merge(o, lse):
    weights = {weights}
    return {out}, {total}
"""
RIGHT_MERGE = {
    "weights": "torch.nan_to_num(torch.softmax(lse, dim=0))",
    "out": "torch.einsum('pt,ptd->td', weights, o)",
    "total": "torch.logsumexp(lse, dim=0)",
}

FLASH = """
def flash(q, k, v, rows, columns):
    outs, sums = [], []
    for q_tile in q.split(rows):
        m = torch.full((len(q_tile), 1), {start})
        l, a = torch.zeros(len(q_tile), 1), torch.zeros(len(q_tile), v.shape[1])
        for k_tile, v_tile in zip(k.split(columns), v.split(columns)):
            scores = q_tile @ k_tile.T {scale}
            new = {new}
            p = torch.exp(scores - new)
            f = torch.exp(m - new)
            l = {total}
            a = {weighted}
            m = new
        outs.append({out})
        sums.append(({lse}).squeeze(1))
    return torch.cat(outs), torch.cat(sums)
"""
RIGHT_FLASH = {
    "start": "-math.inf",
    "scale": "/ math.sqrt(q.shape[1])",
    "new": "torch.maximum(m, scores.amax(dim=1, keepdim=True))",
    "total": "f * l + p.sum(dim=1, keepdim=True)",
    "weighted": "f * a + p @ v_tile",
    "out": "a / l",
    "lse": "m + l.log()",
}

RAGGED = """
def attend_ragged(q, load, s, width):
    m, l, a = torch.full((len(q), 1), -math.inf), 0.0, 0.0
    for start in range(0, {end}, width):
        k, v = load(start)
        real = torch.arange(start, start + width) < s
        scores = q @ k.T / math.sqrt(q.shape[1])
        scores = {masked}
        new = torch.maximum(m, scores.amax(dim=1, keepdim=True))
        p, f = {shares}, (m - new).exp()
        l, a, m = f * l + p.sum(dim=1, keepdim=True), f * a + p @ {values}, new
    return a / l
"""
RIGHT_RAGGED = {
    "end": "s",
    "masked": "scores.masked_fill(~real, -math.inf)",
    "shares": "(scores - new).exp()",
    "values": "torch.where(real[:, None], v, torch.zeros_like(v))",
}

CAUSAL = """
def flash_causal(score, value, t, s, rows, columns):
    out = []
    for i in range(0, t, rows):
        n = min(rows, t - i)
        where = torch.arange(i, i + n)[:, None] + {shift}
        m, l, a = torch.full((n, 1), -math.inf), torch.zeros(n, 1), None
        for j in range(0, s, columns):
            if j > 0 and {skip}:
                {stop}
            v = value(j)
            if a is None:
                a = torch.zeros(n, v.shape[1])
            if {skip}:
                continue
            p = score(i, j)
            {mask}
            new = torch.maximum(m, p.amax(dim=1, keepdim=True))
            safe = {safe}
            p, f = (p - safe).exp(), (m - safe).exp()
            l, a, m = f * l + p.sum(dim=1, keepdim=True), f * a + p @ v, new
        out.append(a / {divisor})
    return torch.cat(out)
"""
RIGHT_CAUSAL = {
    "shift": "s - t",
    "skip": "j > int(where.max())",
    "stop": "break",
    "mask": "p = p.masked_fill(torch.arange(j, j + p.shape[1]) > where, -math.inf)",
    "safe": "torch.nan_to_num(new, neginf=0.0)",
    "divisor": "l.clamp(min=1e-30)",
}

TRAFFIC = """
def traffic(n, d, rows, columns):
    tiles = n // rows
    return {{
        "reads": {reads},
        "writes": {writes},
        "flops": {flops},
        "whole_table": {whole_table},
        "causal_tiles": {causal_tiles},
    }}
"""
RIGHT_TRAFFIC = {
    "reads": "tiles * (rows + 2 * n) * d",
    "writes": "n * (d + 1)",
    "flops": "2 * n**2 * d * 2",
    "whole_table": "(2 * n * d + n * n) + 2 * n * n + (n * n + 2 * n * d)",
    "causal_tiles": "sum(range(1, tiles + 1))",
}

KERNEL = """
@triton.jit
def attend_kernel(
    q, k, v, o, t, s, d, row, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):
    mine = {program} * M + tl.arange(0, M)
    wide = tl.arange(0, D)
    mine_ok = {mine_ok}
    q_tile = tl.load(q + mine[:, None] * row + wide[None, :], mask=mine_ok, other=0.0)
    m = tl.full([M], {start}, tl.float32)
    l = tl.zeros([M], tl.float32)
    a = tl.zeros([M, D], tl.float32)
    for j in range(0, {end}, N):
        keys = j + tl.arange(0, N)
        places = keys[:, None] * row + wide[None, :]
        ok = {ok}
        k_tile = tl.load(k + places, mask=ok, other=0.0)
        v_tile = tl.load(v + places, mask=ok, other=0.0)
        scores = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * {scale}
        scores = {masked}
        new = tl.maximum(m, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        f = tl.exp(m - new)
        l = {total}
        a = {weighted}
        m = new
    tl.store(o + mine[:, None] * row + wide[None, :], {out}, mask={store_ok})
"""
RIGHT_KERNEL = {
    "program": "tl.program_id(0)",
    "mine_ok": "(mine[:, None] < t) & (wide[None, :] < d)",
    "start": "-float('inf')",
    "end": "s",
    "ok": "(keys[:, None] < s) & (wide[None, :] < d)",
    "scale": "scale",
    "masked": "tl.where(keys[None, :] < s, scores, -float('inf'))",
    "total": "l * f + tl.sum(p, 1)",
    "weighted": "a * f[:, None] + tl.dot(p, v_tile, input_precision='ieee')",
    "out": "a / l[:, None]",
    "store_ok": "mine_ok",
}

BUG = """
def tiled_attention(q, k, v, width):
    largest = torch.full((len(q), 1), {start})
    total, weighted = torch.zeros(len(q), 1), torch.zeros(len(q), v.shape[1])
    for start in range(0, {end}, width):
        scores = q @ k[start : start + width].T / q.shape[1] ** 0.5
        before = {before}
        torch.maximum(before, scores.amax(dim=1, keepdim=True), out=largest)
        shares, factor = (scores - largest).exp(), (before - largest).exp()
        total = factor * total + shares.sum(dim=1, keepdim=True)
        weighted = factor * weighted + shares @ v[start : start + width]
    return weighted / total
"""
RIGHT_BUG = {"start": "-math.inf", "end": "len(k)", "before": "largest.clone()"}


def but(template: str, right: dict, **changed: str) -> str:
    """The template with its right lines, but for those that are changed."""
    assert changed.keys() <= right.keys()
    return template.format(**(right | changed))


RIGHT = {
    "07-online-softmax": {
        "through the logarithm": """
def meet(m, l, scores):
    new = torch.maximum(m, scores.amax(dim=1))
    lse = torch.logaddexp(m + l.log(), scores.logsumexp(dim=1))
    seen = new > -math.inf
    return new, torch.where(seen, (lse - torch.where(seen, new, 0.0)).exp(), 0.0)
""",
        "where": but(MEET, RIGHT_MEET),
        "through log-sum-exp": """
def meet(m, l, scores):
    new = torch.maximum(m, scores.max(dim=1).values)
    both = torch.logaddexp(m + l.log(), scores.logsumexp(dim=1))
    total = torch.where(new == -math.inf, torch.zeros_like(l), (both - new).exp())
    exact = (scores.double() - new.double()[:, None]).exp().sum(1) + l * (m - new).double().exp()
    return new, torch.where(new == -math.inf, total, exact.float())
""",
        "row by row": """
def meet(m, l, scores):
    largest, total = m.clone(), l.clone()
    for i in range(len(m)):
        for x in scores[i].tolist():
            if x == -math.inf:
                continue
            old = largest[i].item()
            if x > old:
                total[i] = total[i] * math.exp(old - x) + 1.0
                largest[i] = x
            else:
                total[i] += math.exp(x - old)
    return largest, total
""",
        "old ones as one more column": """
def meet(m, l, scores):
    everything = torch.cat([m[:, None], scores], dim=1)
    weights = torch.cat([l[:, None], torch.ones_like(scores)], dim=1)
    new = everything.amax(dim=1)
    powers = torch.nan_to_num((everything - new[:, None]).exp(), nan=0.0)
    return new, (weights * powers).sum(dim=1)
""",
        "nan replaced": """
def meet(m, l, scores):
    new = torch.max(m, torch.max(scores, dim=-1)[0])
    old = torch.nan_to_num(torch.exp(m - new), nan=0.0) * l
    return new, old + torch.nan_to_num(torch.exp(scores - new.unsqueeze(-1)), nan=0.0).sum(-1)
""",
    },
    "07-merge-partials": {
        "softmax over parts": but(MERGE, RIGHT_MERGE),
        "powers by hand": """
def merge(o, lse):
    largest = lse.amax(dim=0)
    safe = largest.masked_fill(largest == -math.inf, 0.0)
    powers = (lse - safe).exp()
    total = powers.sum(dim=0)
    out = (powers.unsqueeze(-1) * o).sum(dim=0) / total.clamp(min=1e-30).unsqueeze(-1)
    return out, safe + total.log()
""",
        "two at a time": """
def merge(o, lse):
    out, total = o[0], lse[0]
    for o_p, lse_p in zip(o[1:], lse[1:]):
        both = torch.logaddexp(total, lse_p)
        safe = both.masked_fill(both == -math.inf, 0.0)
        out = (total - safe).exp()[:, None] * out + (lse_p - safe).exp()[:, None] * o_p
        total = both
    return out, total
""",
        "a list, query by query": """
def merge(o, lse):
    outs, totals = [], []
    for i in range(lse.shape[1]):
        column = lse[:, i]
        if (column == -math.inf).all():
            outs.append(torch.zeros(o.shape[2]))
        else:
            outs.append(column.softmax(0) @ o[:, i])
        totals.append(column.logsumexp(0))
    return [torch.stack(outs), torch.stack(totals)]
""",
    },
    "07-flash-forward": {
        "split and cat": but(FLASH, RIGHT_FLASH),
        "in place": """
def flash(q, k, v, rows, columns):
    t, d_value = len(q), v.shape[1]
    out, lse = torch.zeros(t, d_value), torch.zeros(t)
    for i in range(t // rows):
        own = slice(i * rows, (i + 1) * rows)
        top = torch.full((rows,), -float("inf"))
        total, acc = torch.zeros(rows), torch.zeros(rows, d_value)
        for j in range(len(k) // columns):
            other = slice(j * columns, (j + 1) * columns)
            x = torch.einsum("td,sd->ts", q[own], k[other]).mul_(q.shape[1] ** -0.5)
            new = torch.maximum(top, x.max(dim=1).values)
            x.sub_(new.unsqueeze(1)).exp_()
            old = (top - new).exp_()
            total.mul_(old).add_(x.sum(dim=1))
            acc.mul_(old[:, None]).addmm_(x, v[other])
            top = new
        out[own], lse[own] = acc / total[:, None], top + torch.log(total)
    return out, lse
""",
        "finished tiles, merged by their lse": """
def flash(q, k, v, rows, columns):
    outs, sums = [], []
    for q_tile in q.split(rows):
        out, lse = torch.zeros(rows, v.shape[1]), torch.full((rows,), -math.inf)
        for k_tile, v_tile in zip(k.split(columns), v.split(columns)):
            scores = q_tile @ k_tile.T * q.shape[1] ** -0.5
            own = scores.logsumexp(dim=1)
            both = torch.logaddexp(lse, own)
            mine = (scores - both[:, None]).exp() @ v_tile
            out, lse = (lse - both).exp()[:, None] * out + mine, both
        outs.append(out)
        sums.append(lse)
    return torch.cat(outs), torch.cat(sums)
""",
        "powers of two": """
def flash(q, k, v, rows, columns):
    o, lse = torch.empty(len(q), v.shape[1]), torch.empty(len(q))
    scale = math.log2(math.e) / q.shape[1] ** 0.5
    for i in range(0, len(q), rows):
        m = torch.full((rows, 1), -math.inf)
        l, a = torch.zeros(rows, 1), torch.zeros(rows, v.shape[1])
        for j in range(0, len(k), columns):
            x = (q[i : i + rows] @ k[j : j + columns].T) * scale
            new = torch.maximum(m, x.amax(1, keepdim=True))
            p, f = torch.exp2(x - new), torch.exp2(m - new)
            l, a, m = l * f + p.sum(1, keepdim=True), a * f + p @ v[j : j + columns], new
        o[i : i + rows] = a / l
        lse[i : i + rows] = ((m + l.log2()) * math.log(2))[:, 0]
    return o, lse
""",
    },
    "07-ragged-tiles": {
        "where": but(RAGGED, RIGHT_RAGGED),
        "cut to what is real": """
def attend_ragged(q, load, s, width):
    m, l, a = torch.full((len(q), 1), -math.inf), 0.0, 0.0
    for start in range(0, s, width):
        k, v = (x[: s - start] for x in load(start))
        scores = q @ k.T / q.shape[1] ** 0.5
        new = torch.maximum(m, scores.amax(dim=1, keepdim=True))
        p, f = (scores - new).exp(), (m - new).exp()
        l, a, m = f * l + p.sum(dim=1, keepdim=True), f * a + p @ v, new
    return a / l
""",
        "all kept": """
def attend_ragged(q, load, s, width):
    tiles = [load(start) for start in range(0, s, width)]
    k, v = (torch.cat(parts)[:s] for parts in zip(*tiles))
    return torch.softmax(q @ k.T / math.sqrt(q.shape[1]), dim=1) @ v
""",
        "zeros first": """
def attend_ragged(q, load, s, width):
    m = torch.full((len(q),), -math.inf)
    l = torch.zeros(len(q))
    a = None
    for start in range(0, s, width):
        k, v = load(start)
        k, v = k.clone(), v.clone()
        k[s - start :], v[s - start :] = 0.0, 0.0
        scores = torch.einsum("td,sd->ts", q, k) / q.shape[1] ** 0.5
        scores[:, s - start :] = -math.inf
        new = torch.maximum(m, scores.max(dim=1).values)
        p = torch.exp(scores - new[:, None])
        f = torch.exp(m - new)
        l = l * f + p.sum(dim=1)
        a = p @ v if a is None else a * f[:, None] + p @ v
        m = new
    return a / l[:, None]
""",
    },
    "07-flash-causal": {
        "nan replaced": but(CAUSAL, RIGHT_CAUSAL),
        "a mask for edge tiles only": """
def flash_causal(score, value, t, s, rows, columns):
    d_value = value(0).shape[1]
    out = torch.zeros(t, d_value)
    for i in range(0, t, rows):
        n = min(rows, t - i)
        top, total = torch.full((n,), -math.inf), torch.zeros(n)
        acc = torch.zeros(n, d_value)
        j = 0
        while j < s and j <= i + n - 1 + s - t:
            x, v = score(i, j), value(j)
            if j + x.shape[1] - 1 > i + s - t:
                ahead = torch.arange(j, j + x.shape[1])[None] - torch.arange(i, i + n)[:, None]
                x = torch.where(ahead > s - t, -math.inf, x)
            new = torch.maximum(top, x.amax(dim=1))
            safe = torch.where(new.isinf(), 0.0, new)
            p, f = (x - safe[:, None]).exp(), (top - safe).exp()
            total, acc, top = f * total + p.sum(1), f[:, None] * acc + p @ v, new
            j += columns
        out[i : i + n] = acc / torch.where(total > 0, total, 1.0)[:, None]
    return out
""",
        "scores gathered, one softmax a tile of queries": """
def flash_causal(score, value, t, s, rows, columns):
    values = [value(j) for j in range(0, s, columns)]
    out = []
    for i in range(0, t, rows):
        last = min(i + rows, t) - 1
        n = last + 1 - i
        tiles = [score(i, j) for j in range(0, min(last + s - t + 1, s), columns)]
        if not tiles:
            out.append(torch.zeros(n, values[0].shape[1]))
            continue
        x, v = torch.cat(tiles, dim=1), torch.cat(values[: len(tiles)])
        hidden = torch.arange(x.shape[1]) > torch.arange(i, last + 1)[:, None] + s - t
        weights = x.masked_fill(hidden, -math.inf).softmax(dim=1).nan_to_num()
        out.append(weights @ v)
    return torch.cat(out)
""",
    },
    "07-find-the-bug-tiles": {
        "a clone": but(BUG, RIGHT_BUG),
        "written anew": """
def tiled_attention(q, k, v, width):
    m, l, a = torch.full((len(q), 1), -math.inf), 0.0, 0.0
    for k_tile, v_tile in zip(k.split(width), v.split(width)):
        scores = q @ k_tile.T * q.shape[1] ** -0.5
        new = torch.maximum(m, scores.amax(dim=1, keepdim=True))
        p, f = (scores - new).exp(), (m - new).exp()
        l, a, m = f * l + p.sum(dim=1, keepdim=True), f * a + p @ v_tile, new
    return a / l
""",
        "begins with the first tile": """
def tiled_attention(q, k, v, width):
    root = math.sqrt(q.shape[1])
    scores = q @ k[:width].T / root
    largest = scores.amax(dim=1, keepdim=True)
    shares = (scores - largest).exp()
    total, weighted = shares.sum(dim=1, keepdim=True), shares @ v[:width]
    for start in range(width, len(k), width):
        scores = q @ k[start : start + width].T / root
        new = torch.maximum(largest, scores.amax(dim=1, keepdim=True))
        shares, factor = (scores - new).exp(), (largest - new).exp()
        total = factor * total + shares.sum(dim=1, keepdim=True)
        weighted = factor * weighted + shares @ v[start : start + width]
        largest = new
    return weighted / total
""",
    },
    "07-io-count": {
        "other formulas": but(TRAFFIC, RIGHT_TRAFFIC),
        "loops": """
def traffic(n, d, rows, columns):
    reads = writes = flops = tiles = 0
    for i in range(0, n, rows):
        reads += rows * d
        for j in range(0, n, columns):
            reads += 2 * columns * d
            flops += 2 * 2 * rows * columns * d
        writes += rows * d + rows
        tiles += i // rows + 1
    table = n * n
    return {
        "reads": reads,
        "writes": writes,
        "flops": flops,
        "whole_table": 2 * n * d + table + table + table + table + n * d + n * d,
        "causal_tiles": tiles,
    }
""",
    },
    "07-triton-kernel": {
        "names of their own": but(KERNEL, RIGHT_KERNEL),
        "powers of two, divided by a reciprocal": """
@triton.jit
def attend_kernel(
    q, k, v, o, t, s, d, row, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    c = tl.arange(0, D)[None, :]
    x = tl.load(q + i * row + c, mask=(i < t) & (c < d), other=0.0) * scale * 1.4426950408889634
    m = tl.zeros([M, 1], tl.float32) - float("inf")
    l = tl.zeros([M, 1], tl.float32)
    a = tl.zeros([M, D], tl.float32)
    start = 0
    while start < s:
        j = start + tl.arange(0, N)[:, None]
        y = tl.load(k + j * row + c, mask=(j < s) & (c < d), other=0.0)
        z = tl.load(v + j * row + c, mask=(j < s) & (c < d), other=0.0)
        p = tl.dot(x, tl.trans(y), input_precision="ieee")
        p = p + tl.where(start + tl.arange(0, N)[None, :] < s, 0.0, float("-inf"))
        new = tl.maximum(m, tl.max(p, 1, keep_dims=True))
        p = tl.exp2(p - new)
        l = l * tl.exp2(m - new) + tl.sum(p, 1, keep_dims=True)
        a = tl.dot(p, z, a * tl.exp2(m - new), input_precision="ieee")
        m = new
        start += N
    tl.store(o + i * row + c, a * (1.0 / l), mask=(i < t) & (c < d))
""",
    },
}

NAN = "more than one slip ends in the same NaN, which is named nowhere"

WRONG = {
    "07-online-softmax": {
        "old sum as it was": (but(MEET, RIGHT_MEET, factor="1.0"), "bring it along"),
        "factor upside down": (
            but(MEET, RIGHT_MEET, factor="torch.where(l == 0, 0.0, (safe - m).exp())"),
            "exp(new - old)",
        ),
        "largest at least 0": (
            but(MEET, RIGHT_MEET, new="torch.maximum(m, best).clamp(min=0)"),
            "at least 0",
        ),
        "largest of the piece": (but(MEET, RIGHT_MEET, new="best"), "largest so far"),
        "own largest of the piece": (
            but(MEET, RIGHT_MEET, fresh="torch.nan_to_num((scores - best[:, None]).exp())"),
            "relative to the same number",
        ),
        "nothing taken off": (
            but(MEET, RIGHT_MEET, factor="1.0", fresh="scores.exp()"),
            "take the largest off first",
        ),
        "one largest for all rows": (
            but(MEET, RIGHT_MEET, new="torch.maximum(m, scores.max().expand_as(m))"),
            "each row has its own",
        ),
        "empty row": (
            """
def meet(m, l, scores):
    new = torch.maximum(m, scores.amax(dim=1))
    return new, (m - new).exp() * l + (scores - new[:, None]).exp().sum(dim=1)
""",
            "-inf minus -inf",
        ),
        "the sum only": (
            """
def meet(m, l, scores):
    new = torch.maximum(m, scores.amax(dim=1))
    return (m - new).exp() * l + (scores - new[:, None]).exp().sum(dim=1)
""",
            "expected 2 items",
        ),
        "the old largest": (
            """
def meet(m, l, scores):
    new = torch.maximum(m, scores.amax(dim=1))
    safe = new.masked_fill(new == -math.inf, 0.0)
    return m, (m - safe).exp() * l + (scores - safe[:, None]).exp().sum(dim=1)
""",
            None,
            "the old m comes back; the first message shows it beside the right one",
        ),
        "mean for sum": (
            but(MEET, RIGHT_MEET).replace(".sum(dim=1)", ".mean(dim=1)"),
            None,
            "the message shows both sums",
        ),
    },
    "07-merge-partials": {
        "powers not divided": (
            """
def merge(o, lse):
    largest = lse.amax(dim=0)
    powers = (lse - largest.masked_fill(largest == -math.inf, 0.0)).exp()
    total = powers.sum(dim=0)
    return torch.einsum('pt,ptd->td', powers, o), largest + total.log()
""",
            "sums are not divided",
        ),
        "lse lacks the largest": (
            """
def merge(o, lse):
    largest = lse.amax(dim=0)
    powers = (lse - largest.masked_fill(largest == -math.inf, 0.0)).exp()
    total = powers.sum(dim=0)
    return torch.einsum('pt,ptd->td', powers, o) / total.clamp(min=1e-30)[:, None], total.log()
""",
            "lacks the largest",
        ),
        "plain mean": (but(MERGE, RIGHT_MERGE, out="o.mean(dim=0)"), "same say"),
        "plain sum": (but(MERGE, RIGHT_MERGE, out="o.sum(dim=0)"), "average them"),
        "weighted by lse": (
            but(MERGE, RIGHT_MERGE, weights="lse / lse.sum(dim=0)"),
            "weighs by lse itself",
        ),
        "softmax over queries": (
            but(MERGE, RIGHT_MERGE, weights="lse.softmax(dim=1)"),
            "over the parts",
        ),
        "overflow": (
            """
def merge(o, lse):
    powers = lse.exp()
    total = powers.sum(dim=0)
    out = (powers[..., None] * o).sum(dim=0) / total.clamp(min=1e-38)[:, None]
    return out, total.log()
""",
            "overflows",
        ),
        "empty rows": (but(MERGE, RIGHT_MERGE, weights="lse.softmax(dim=0)"), "sees nothing"),
        "the largest lse": (but(MERGE, RIGHT_MERGE, total="lse.amax(dim=0)"), "largest of the"),
        "lse added": (but(MERGE, RIGHT_MERGE, total="lse.sum(dim=0)"), "logarithm of a sum"),
        "lse averaged": (but(MERGE, RIGHT_MERGE, total="lse.mean(dim=0)"), "mean of the parts"),
        "not normalised": (
            but(MERGE, RIGHT_MERGE, weights="lse.exp()"),
            None,
            "the values are too large by a factor of their own in each row",
        ),
        "two parts only": (
            """
def merge(o, lse):
    total = torch.logaddexp(lse[0], lse[-1])
    share = torch.nan_to_num(torch.stack([lse[0], lse[-1]]).softmax(0))
    return share[0][:, None] * o[0] + share[1][:, None] * o[-1], total
""",
            None,
            "with three parts one is left out; the case says how many there were",
        ),
    },
    "07-flash-forward": {
        "the sum for its logarithm": (
            but(FLASH, RIGHT_FLASH, lse="l"),
            "m plus its logarithm",
        ),
        "output not brought along": (
            but(FLASH, RIGHT_FLASH, weighted="a + p @ v_tile"),
            "weighted sum of values is not brought along",
        ),
        "total not brought along": (
            but(FLASH, RIGHT_FLASH, total="l + p.sum(dim=1, keepdim=True)"),
            "sum of exponentials is not brought along",
        ),
        "nothing brought along": (
            but(
                FLASH,
                RIGHT_FLASH,
                total="l + p.sum(dim=1, keepdim=True)",
                weighted="a + p @ v_tile",
            ),
            "old sums are not brought along",
        ),
        "divided in the loop": (
            but(FLASH, RIGHT_FLASH, weighted="(f * a + p @ v_tile) / l", out="a"),
            "divide once at the end",
        ),
        "tiles averaged": (
            """
def flash(q, k, v, rows, columns):
    scores = [q @ k_tile.T / q.shape[1] ** 0.5 for k_tile in k.split(columns)]
    outs = [x.softmax(dim=1) @ v_tile for x, v_tile in zip(scores, v.split(columns))]
    return torch.stack(outs).mean(0), scores[-1].logsumexp(1)
""",
            "averages the tiles",
        ),
        "last tile only": (
            """
def flash(q, k, v, rows, columns):
    for k_tile, v_tile in zip(k.split(columns), v.split(columns)):
        scores = q @ k_tile.T / q.shape[1] ** 0.5
        o, lse = scores.softmax(dim=1) @ v_tile, scores.logsumexp(dim=1)
    return o, lse
""",
            "last tile of keys alone",
        ),
        "largest from zero": (but(FLASH, RIGHT_FLASH, start="0.0"), "at least 0"),
        "no largest": (
            but(FLASH, RIGHT_FLASH, new="torch.zeros_like(m)", start="0.0"),
            "take the largest off first",
        ),
        "lse without the largest": (but(FLASH, RIGHT_FLASH, lse="l.log()"), "lacks the largest"),
        "lse without the logarithm": (but(FLASH, RIGHT_FLASH, lse="m + l"), "take the logarithm"),
        "not scaled": (but(FLASH, RIGHT_FLASH, scale=""), "without dividing the scores"),
        "scaled by the width": (
            but(FLASH, RIGHT_FLASH, scale="/ q.shape[1]"),
            "divided by d_head, not by its",
        ),
        "the whole table": (
            """
def flash(q, k, v, rows, columns):
    scores = q @ k.T / q.shape[1] ** 0.5
    return scores.softmax(dim=1) @ v, scores.logsumexp(dim=1)
""",
            "memory",
        ),
        "one long row of tiles": (
            """
def flash(q, k, v, rows, columns):
    outs, sums = [], []
    for q_row in q:
        scores = k @ q_row / q.shape[1] ** 0.5
        weights = scores.softmax(dim=0)
        outs.append(sum(w * v_row for w, v_row in zip(weights, v)))
        sums.append(scores.logsumexp(0))
    return torch.stack(outs), torch.stack(sums)
""",
            "processor time",
        ),
    },
    "07-ragged-tiles": {
        "last key dropped": (
            but(RAGGED, RIGHT_RAGGED).replace("< s\n", "< s - 1\n"),
            "one key too many at the end",
        ),
        "tail counted": (
            but(RAGGED, RIGHT_RAGGED, masked="scores", values="v"),
            "counted like a key",
        ),
        "tail gets a score of 0": (
            but(RAGGED, RIGHT_RAGGED, masked="scores.masked_fill(~real, 0.0)"),
            "0 is no small score",
        ),
        "tail dropped": (
            but(RAGGED, RIGHT_RAGGED, end="s // width * width"),
            "after the last whole tile",
        ),
        "values of the tail stay": (
            but(RAGGED, RIGHT_RAGGED, values="v"),
            "0 times NaN is NaN",
        ),
        "weights times the mask": (
            but(RAGGED, RIGHT_RAGGED, values="(v * real[:, None])"),
            "0 times NaN is NaN",
        ),
        "masked after the exponential": (
            but(
                RAGGED,
                RIGHT_RAGGED,
                masked="scores",
                shares="(scores - new).exp().masked_fill(~real, 0.0)",
            ),
            "after the exponential",
        ),
        "one key too many": (
            but(RAGGED, RIGHT_RAGGED).replace("< s\n", "<= s\n"),
            "one key too many",
        ),
        "a whole last tile hidden": (
            but(RAGGED, RIGHT_RAGGED).replace(
                "    real = torch.arange(start, start + width) < s\n",
                "    real = torch.arange(width) < (s % width if start + width >= s else width)\n",
            ),
            "the last tile is a whole one",
        ),
        "scores times the mask": (
            but(RAGGED, RIGHT_RAGGED, masked="scores * real"),
            "0 is no small score",
        ),
        "one tile too far": (
            but(RAGGED, RIGHT_RAGGED, end="s + 1"),
            "no tile of",
        ),
        "nothing brought along": (
            but(RAGGED, RIGHT_RAGGED).replace("f * l", "l").replace("f * a", "a"),
            None,
            "the sums are those of another exercise; here the numbers are shown",
        ),
    },
    "07-flash-causal": {
        "edge tiles skipped": (
            but(
                CAUSAL,
                RIGHT_CAUSAL,
                skip="j + columns - 1 > i + s - t and min(j + columns, s) - 1 > i + s - t",
                stop="break",
            ),
            "see a part are left out",
        ),
        "edge tiles taken whole": (but(CAUSAL, RIGHT_CAUSAL, mask="pass"), "are taken whole"),
        "the first query decides": (
            but(CAUSAL, RIGHT_CAUSAL, skip="j > int(where.min())"),
            "the last sees furthest",
        ),
        "top left": (but(CAUSAL, RIGHT_CAUSAL, shift="0"), "at the first position"),
        "own key hidden": (
            but(
                CAUSAL,
                RIGHT_CAUSAL,
                mask="p = p.masked_fill(torch.arange(j, j + p.shape[1]) >= where, -math.inf)",
            ),
            "hides each position from itself",
        ),
        "empty rows": (
            but(CAUSAL, RIGHT_CAUSAL, safe="new", divisor="l"),
            "sees nothing",
        ),
        "every tile": (but(CAUSAL, RIGHT_CAUSAL, skip="False"), "every tile"),
        "every tile, then a mask": (
            but(CAUSAL, RIGHT_CAUSAL, stop="score(i, j)"),
            "every tile",
        ),
        "each tile twice": (
            but(CAUSAL, RIGHT_CAUSAL).replace(
                "p = score(i, j)\n", "p = score(i, j) + 0 * score(i, j)\n"
            ),
            None,
            "the message counts the tiles that were asked for again",
        ),
        "no softmax over tiles": (
            but(CAUSAL, RIGHT_CAUSAL).replace("f * l", "l").replace("f * a", "a"),
            None,
            "the sums are those of another exercise; here the numbers are shown",
        ),
    },
    "07-find-the-bug-tiles": {
        "as it stood": (
            but(BUG, RIGHT_BUG, start="0.0", end="len(k) - width + 1", before="largest"),
            "draft as it stood",
        ),
        "from zero": (but(BUG, RIGHT_BUG, start="0.0"), "at least 0"),
        "two names": (but(BUG, RIGHT_BUG, before="largest"), "not brought along"),
        "tail dropped": (
            but(BUG, RIGHT_BUG, end="len(k) - width + 1"),
            "after the last whole tile",
        ),
        "two left": (
            but(BUG, RIGHT_BUG, start="0.0", end="len(k) - width + 1"),
            "after the last whole tile",
        ),
        "a low number": (
            but(BUG, RIGHT_BUG, start="-1000.0"),
            None,
            "right down to -1000; the case with lower scores shows NaN",
        ),
    },
    "07-io-count": {
        "keys once": (but(TRAFFIC, RIGHT_TRAFFIC, reads="3 * n * d"), "keys and values once"),
        "no values": (but(TRAFFIC, RIGHT_TRAFFIC, reads="n * d + n * d * tiles"), "values are not"),
        "queries again": (
            but(TRAFFIC, RIGHT_TRAFFIC, reads="2 * n * d + n * d * (n // columns)"),
            "here they stay",
        ),
        "all three again": (but(TRAFFIC, RIGHT_TRAFFIC, reads="3 * n * d * tiles"), "one tile"),
        "passes by width": (
            but(TRAFFIC, RIGHT_TRAFFIC, reads="n * d + 2 * n * d * (n // columns)"),
            "number of passes",
        ),
        "no queries": (but(TRAFFIC, RIGHT_TRAFFIC, reads="2 * n * d * tiles"), "are read, too"),
        "no lse": (but(TRAFFIC, RIGHT_TRAFFIC, writes="n * d"), "log-sum-exp"),
        "scores written": (
            but(TRAFFIC, RIGHT_TRAFFIC, writes="n * d + n + n * n"),
            "never written here",
        ),
        "half": (but(TRAFFIC, RIGHT_TRAFFIC, flops="2 * n * n * d"), "two products"),
        "fewer FLOPs": (but(TRAFFIC, RIGHT_TRAFFIC, flops="4 * n * n * d // rows"), "less"),
        "table once": (
            but(TRAFFIC, RIGHT_TRAFFIC, whole_table="4 * n * d + n * n"),
            "moved four times",
        ),
        "table twice": (
            but(TRAFFIC, RIGHT_TRAFFIC, whole_table="4 * n * d + 2 * n * n"),
            "moved four times",
        ),
        "table alone": (but(TRAFFIC, RIGHT_TRAFFIC, whole_table="4 * n * n"), "move, too"),
        "half of the tiles": (
            but(TRAFFIC, RIGHT_TRAFFIC, causal_tiles="tiles**2 // 2"),
            "more than half",
        ),
        "all tiles": (but(TRAFFIC, RIGHT_TRAFFIC, causal_tiles="tiles**2"), "every tile"),
        "no diagonal": (
            but(TRAFFIC, RIGHT_TRAFFIC, causal_tiles="tiles * (tiles - 1) // 2"),
            "diagonal are visited, too",
        ),
        "a key misspelt": (
            but(TRAFFIC, RIGHT_TRAFFIC).replace('"reads"', '"read"'),
            "other keys",
        ),
    },
    "07-triton-kernel": {
        "tail gets a score of 0": (but(KERNEL, RIGHT_KERNEL, masked="scores"), "no small score"),
        "tail dropped": (
            but(KERNEL, RIGHT_KERNEL, end="s // N * N"),
            "after the last whole tile",
        ),
        "keys past the end are read": (
            but(KERNEL, RIGHT_KERNEL, ok="(keys[:, None] < 99999) & (wide[None, :] < d)"),
            None,
            NAN,
        ),
        "columns past the end are read": (
            but(KERNEL, RIGHT_KERNEL, ok="(keys[:, None] < s) & (wide[None, :] < D)"),
            None,
            NAN,
        ),
        "not scaled": (but(KERNEL, RIGHT_KERNEL, scale="1.0"), "without dividing the scores"),
        "output not brought along": (
            but(KERNEL, RIGHT_KERNEL, weighted="a + tl.dot(p, v_tile, input_precision='ieee')"),
            "weighted sum of values is not brought along",
        ),
        "nothing brought along": (
            but(
                KERNEL,
                RIGHT_KERNEL,
                weighted="a + tl.dot(p, v_tile, input_precision='ieee')",
                total="l + tl.sum(p, 1)",
            ),
            "old sums are not brought along",
        ),
        "not divided": (but(KERNEL, RIGHT_KERNEL, out="a"), "sums are not divided"),
        "every program the first": (but(KERNEL, RIGHT_KERNEL, program="0"), "program's own"),
        "rows past the end are written": (
            but(KERNEL, RIGHT_KERNEL, store_ok="(mine[:, None] < 99999) & (wide[None, :] < d)"),
            "store with a mask",
        ),
        "columns past the end are written": (
            but(KERNEL, RIGHT_KERNEL, store_ok="(mine[:, None] < t) & (wide[None, :] < D)"),
            None,
            "numbers stand where -7 stood; the message shows where",
        ),
        "a name that is not there": (
            but(KERNEL, RIGHT_KERNEL, out="acc / l[:, None]"),
            "NameError",
        ),
    },
}
