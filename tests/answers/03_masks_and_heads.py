"""Known answers to chapter 03: right ones written in many ways, wrong ones that look reasonable.

A right answer must get every point. A wrong one is a source and the words that its author must
see; or a source, None, and the reason why no message can tell more than where the numbers differ.
"""

RIGHT = {
    "03-causal-mask": {
        "tril": """
def causal(t, s):
    return torch.ones(t, s, dtype=torch.bool).tril(diagonal=s - t)
""",
        "loops": """
def causal(t, s):
    mask = torch.zeros(t, s, dtype=torch.bool)
    for i in range(t):
        for j in range(s):
            mask[i, j] = j <= s - t + i
    return mask
""",
        "not triu": """
def causal(t, s):
    return ~torch.triu(torch.ones(t, s), diagonal=s - t + 1).bool()
""",
        "a list of lists": """
def causal(t, s):
    rows = [[i >= j for j in range(s)] for i in range(s - t, s)]
    return torch.tensor(rows)
""",
        "the bottom of the square one": """
def causal(t, s):
    n = max(t, s)
    square = torch.ones(n, n).tril().bool()
    return square[n - t :, n - s :]
""",
        "in place": """
def causal(t, s):
    mask = torch.ones((t, s)).bool()
    mask.tril_(s - t)
    return mask
""",
    },
    "03-padding-mask": {
        "reshape": """
def padding(lengths, s):
    b = len(lengths)
    return torch.arange(s).reshape(1, 1, s) < lengths.reshape(b, 1, 1)
""",
        "loops": """
def padding(lengths, s):
    mask = torch.zeros(len(lengths), 1, s, dtype=torch.bool)
    for n, length in enumerate(lengths):
        mask[n, :, :length] = True
    return mask
""",
        "unsqueeze, the other way round": """
def padding(lengths, s):
    return torch.gt(lengths.unsqueeze(1), torch.arange(s)).unsqueeze(1)
""",
        "lists": """
def padding(lengths, s):
    return torch.tensor([[[j < n for j in range(s)]] for n in lengths.tolist()])
""",
        "rows of a triangle": """
def padding(lengths, s):
    return torch.ones(s + 1, s).tril(-1).bool()[lengths][:, None]
""",
        "a cumulative sum": """
def padding(lengths, s):
    ones = torch.ones(len(lengths), s, dtype=torch.long)
    return rearrange(ones.cumsum(dim=1) <= lengths[:, None], "b s -> b 1 s")
""",
    },
    "03-masked-softmax": {
        "minus infinity, then zeros for NaN": """
def masked_softmax(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return torch.nan_to_num(weights, nan=0.0)
""",
        "powers by hand": """
def masked_softmax(scores, mask):
    closed = ~mask
    best = scores.masked_fill(closed, float("-inf")).amax(dim=-1, keepdim=True)
    best = best.masked_fill(best == float("-inf"), 0.0).detach()
    powers = (scores - best).masked_fill(closed, float("-inf")).exp()
    total = powers.sum(dim=-1, keepdim=True)
    return powers / total.masked_fill(total == 0, 1.0)
""",
        "where": """
def masked_softmax(scores, mask):
    low = torch.full_like(scores, torch.finfo(scores.dtype).min)
    weights = F.softmax(torch.where(mask, scores, low), -1)
    return torch.where(mask, weights, torch.zeros_like(weights))
""",
        "empty rows opened, then closed": """
def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    empty = ~mask.any(dim=-1, keepdim=True)
    weights = scores.masked_fill(~(mask | empty), float("-inf")).softmax(dim=-1)
    return weights.masked_fill(empty, 0.0)
""",
        "row by row": """
def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    s = scores.shape[-1]
    rows = []
    for row, is_open in zip(scores.reshape(-1, s), mask.reshape(-1, s)):
        weights = torch.zeros_like(row)
        if is_open.any():
            weights[is_open] = row[is_open].softmax(dim=0)
        rows.append(weights)
    return torch.stack(rows).reshape(scores.shape)
""",
        "in place on a copy": """
def masked_softmax(scores, mask):
    low = scores.clone()
    low[~mask.expand_as(scores)] = torch.finfo(scores.dtype).min
    return low.softmax(-1) * mask
""",
    },
    "03-split-merge-heads": {
        "reshape and transpose": """
def split_heads(x, n_heads):
    b, t, d_model = x.shape
    return x.reshape(b, t, n_heads, d_model // n_heads).transpose(1, 2)

def merge_heads(heads):
    return heads.transpose(1, 2).flatten(2)
""",
        "chunk and cat": """
def split_heads(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)

def merge_heads(heads):
    return torch.cat([heads[:, i] for i in range(heads.shape[1])], dim=-1)
""",
        "loops": """
def split_heads(x, n_heads):
    b, t, d_model = x.shape
    d_head = d_model // n_heads
    heads = x.new_zeros(b, n_heads, t, d_head)
    for i in range(n_heads):
        for j in range(d_head):
            heads[:, i, :, j] = x[:, :, i * d_head + j]
    return heads

def merge_heads(heads):
    b, h, t, d_head = heads.shape
    x = heads.new_zeros(b, t, h * d_head)
    for i in range(h):
        x[..., i * d_head : (i + 1) * d_head] = heads[:, i]
    return x
""",
        "unflatten, permute, contiguous": """
def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).permute(0, 2, 1, 3)

def merge_heads(heads):
    b, h, t, d_head = heads.shape
    return heads.permute(0, 2, 1, 3).contiguous().view(b, t, h * d_head)
""",
        "columns first": """
def split_heads(x, n_heads):
    b, t, d_model = x.shape
    return x.mT.reshape(b, n_heads, d_model // n_heads, t).mT

def merge_heads(heads):
    b, h, t, d_head = heads.shape
    return heads.mT.reshape(b, h * d_head, t).mT
""",
    },
    "03-multi-head-attention": {
        "a loop over heads": """
def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):
    b, t, d_model = x.shape
    d_head = d_model // n_heads
    if mask is not None:
        mask = mask.expand(b, n_heads, t, t)
    out = 0
    for i in range(n_heads):
        own = slice(i * d_head, (i + 1) * d_head)
        open_keys = None if mask is None else mask[:, i]
        q, k, v = x @ w_q[:, own], x @ w_k[:, own], x @ w_v[:, own]
        out = out + dot_product_attention(q, k, v, open_keys) @ w_o[own]
    return out
""",
        "reshape and transpose, softmax by hand": """
def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):
    b, t, d_model = x.shape
    def split(y):
        return y.reshape(b, t, n_heads, -1).transpose(1, 2)
    q, k, v = split(x @ w_q), split(x @ w_k), split(x @ w_v)
    scores = q @ k.transpose(-2, -1) / math.sqrt(d_model // n_heads)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
    return (weights @ v).transpose(1, 2).reshape(b, t, d_model) @ w_o
""",
        "einsum over named heads": """
def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):
    d_head = x.shape[-1] // n_heads
    w_q, w_k, w_v = (w.unflatten(1, (n_heads, d_head)) for w in (w_q, w_k, w_v))
    q = torch.einsum("btm,mhd->bhtd", x, w_q)
    k = torch.einsum("btm,mhd->bhtd", x, w_k)
    v = torch.einsum("btm,mhd->bhtd", x, w_v)
    scores = torch.einsum("bhtd,bhsd->bhts", q, k) * d_head**-0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(scores.softmax(-1))
    return torch.einsum("bhts,bhsd,hdm->btm", weights, v, w_o.unflatten(0, (n_heads, d_head)))
""",
        "torch's own attention": """
def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):
    q, k, v = (torch.stack((x @ w).chunk(n_heads, -1), 1) for w in (w_q, w_k, w_v))
    if mask is not None:
        mask = mask.expand(x.shape[0], n_heads, x.shape[1], x.shape[1])
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return torch.cat(heads.unbind(1), -1) @ w_o
""",
        "one product for all three": """
def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):
    qkv = x @ torch.cat([w_q, w_k, w_v], dim=1)
    q, k, v = rearrange(qkv, "b t (n h d) -> n b h t d", n=3, h=n_heads)
    return rearrange(dot_product_attention(q, k, v, mask), "b h t d -> b t (h d)") @ w_o
""",
    },
    "03-find-the-bug-heads": {
        "einops and the library": """
def causal_heads(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (rearrange(x @ w, "b t (h d) -> b h t d", h=n_heads) for w in (w_q, w_k, w_v))
    out = dot_product_attention(q, k, v, causal_mask(x.shape[1]))
    return rearrange(out, "b h t d -> b t (h d)") @ w_o
""",
        "tril": """
def causal_heads(x, w_q, w_k, w_v, w_o, n_heads):
    b, t, d_model = x.shape
    d_head = d_model // n_heads
    q, k, v = ((x @ w).view(b, t, n_heads, d_head).transpose(1, 2) for w in (w_q, w_k, w_v))
    scores = q @ k.mT * d_head**-0.5
    weights = scores.masked_fill(torch.ones(t, t).tril() == 0, -float("inf")).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o
""",
        "is_causal": """
def causal_heads(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (torch.stack((x @ w).chunk(n_heads, -1), 1) for w in (w_q, w_k, w_v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return torch.cat(out.unbind(1), -1) @ w_o
""",
    },
    "03-attention-cost": {
        "head by head": """
def attention_cost(b, t, s, d_model, n_heads):
    d_head = d_model // n_heads
    pairs = b * n_heads * t * s
    one = 2 * d_model * d_model
    return {
        "parameters": d_model * d_model * 4,
        "projection_flops": b * t * one + b * s * one + b * s * one + b * t * one,
        "score_flops": pairs * d_head * 2,
        "mixing_flops": pairs * 2 * d_head,
        "weight_numbers": pairs,
    }
""",
        "loops": """
def attention_cost(b, t, s, d_model, n_heads):
    cost = dict.fromkeys(
        ["parameters", "projection_flops", "score_flops", "mixing_flops", "weight_numbers"], 0
    )
    for rows in (t, s, s, t):
        cost["parameters"] += d_model**2
        cost["projection_flops"] += 2 * b * rows * d_model**2
    for _ in range(b):
        for _ in range(n_heads):
            cost["score_flops"] += 2 * t * s * (d_model // n_heads)
            cost["mixing_flops"] += 2 * t * s * (d_model // n_heads)
            cost["weight_numbers"] += t * s
    return cost
""",
    },
    "03-catch-the-leak": {
        "other random numbers": """
def looks_ahead(attend, x):
    generator = torch.Generator().manual_seed(0)
    out = attend(x.clone())
    for cut in range(1, x.shape[1]):
        other = torch.randn(x.shape, generator=generator)
        other[:, :cut] = x[:, :cut]
        if not torch.allclose(attend(other)[:, :cut], out[:, :cut], rtol=0, atol=1e-5):
            return True
    return False
""",
        "one position at a time": """
def looks_ahead(attend, x):
    before = attend(x)
    found = False
    for j in range(1, x.shape[1]):
        for power in (1, 2):
            moved = x.clone()
            moved[:, j] = (power * x[:, j].roll(1, dims=-1) + 0.7).sin() * 2
            after = attend(moved)
            for i in range(j):
                found = found or (after[:, i] - before[:, i]).abs().max().item() > 1e-5
    return found
""",
        "from the end, as a tensor of differences": """
def looks_ahead(attend, x):
    t = x.shape[1]
    worst = 0.0
    before = attend(x)
    for i in reversed(range(t - 1)):
        future = torch.arange(t)[:, None] > i
        after = attend(torch.where(future, 2 - x * 1.3, x))
        worst = max(worst, float((after - before)[:, : i + 1].abs().max()))
    return worst > 1e-5
""",
        "many tries, both signs": """
def looks_ahead(attend, x):
    torch.manual_seed(1)
    whole = attend(x)
    for i in range(1, x.shape[1]):
        for _ in range(5):
            fresh = torch.cat([x[:, :i], torch.randn_like(x[:, i:]) * 1.5], dim=1)
            moved = attend(fresh)[:, :i] - whole[:, :i]
            if moved.max() > 1e-5 or moved.min() < -1e-5:
                return True
    return False
""",
    },
    "03-score-rank": {
        "all to q": """
def factor_scores(scores, d_head):
    t, s = scores.shape
    u, values, vh = torch.linalg.svd(scores)
    q, k = torch.zeros(t, d_head), torch.zeros(s, d_head)
    for r in range(min(t, s, d_head)):
        q[:, r] = u[:, r] * values[r] * d_head**0.5
        k[:, r] = vh[r]
    return q, k
""",
        "eigenvectors of S S^T": """
def factor_scores(scores, d_head):
    wide = scores.double()
    _, vectors = torch.linalg.eigh(wide @ wide.T)
    best = vectors.flip(-1)[:, :d_head]  # the largest first
    q, k = best * d_head**0.5, wide.T @ best
    spare = d_head - best.shape[1]
    return F.pad(q, (0, spare)).float(), F.pad(k, (0, spare)).float()
""",
        "turned": """
def factor_scores(scores, d_head):
    # any rotation of q and k together makes the same scores
    u, values, vh = torch.linalg.svd(scores, full_matrices=False)
    r = min(d_head, len(values))
    q = torch.cat([u[:, :r] * values[:r], scores.new_zeros(len(u), d_head - r)], dim=1)
    k = torch.cat([vh[:r].T, scores.new_zeros(vh.shape[1], d_head - r)], dim=1)
    turn, _ = torch.linalg.qr(torch.randn(d_head, d_head))
    return q @ turn * d_head**0.25, k @ turn * d_head**0.25
""",
    },
}


def _body(head: str, body: str) -> str:
    return f"\n{head}\n    " + body.replace("\n", "\n    ") + "\n"


def _causal(body: str) -> str:
    return _body("def causal(t, s):", body)


def _padding(body: str) -> str:
    return _body("def padding(lengths, s):", body)


def _masked(body: str) -> str:
    return _body("def masked_softmax(scores, mask):", body)


RIGHT_SPLIT = "x.reshape(*x.shape[:2], n_heads, -1).transpose(1, 2)"
RIGHT_MERGE = "heads.transpose(1, 2).flatten(2)"


def _split_merge(split: str = f"return {RIGHT_SPLIT}", merge: str = f"return {RIGHT_MERGE}") -> str:
    one = _body("def split_heads(x, n_heads):", split)
    return one + _body("def merge_heads(heads):", merge)


HEADS = """b, t, d_model = x.shape
d_head = d_model // n_heads
q, k, v = ({split} for w in (w_q, w_k, w_v))
scores = q @ k.mT / {divisor} ** 0.5
{mask}
weights = {weights}
heads = weights @ v
return {merge} @ w_o"""
SPLIT = "(x @ w).reshape(b, t, n_heads, d_head).transpose(1, 2)"
CUT = "(x @ w).reshape(b, n_heads, t, d_head)"
MERGE = "heads.transpose(1, 2).reshape(b, t, d_model)"
CUT_BACK = "heads.reshape(b, t, d_model)"
FILL = "if mask is not None:\n    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)"
ZEROED = "scores.softmax(-1) if mask is None else scores.softmax(-1) * mask"


def _heads(
    split: str = SPLIT,
    divisor: str = "d_head",
    mask: str = FILL,
    weights: str = ZEROED,
    merge: str = MERGE,
) -> str:
    body = HEADS.format(split=split, divisor=divisor, mask=mask, weights=weights, merge=merge)
    return _body("def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):", body)


def _bug(
    split: str = CUT, divisor: str = "d_model", diagonal: int = 2, merge: str | None = None
) -> str:
    merge = merge or (CUT_BACK if split == CUT else MERGE)
    closed = f"closed = torch.ones(t, t).triu(diagonal={diagonal}).bool()\n"
    mask = closed + 'scores = scores.masked_fill(closed, float("-inf"))'
    body = HEADS.format(
        split=split, divisor=divisor, mask=mask, weights="scores.softmax(-1)", merge=merge
    )
    return _body("def causal_heads(x, w_q, w_k, w_v, w_o, n_heads):", body)


COST = """
def attention_cost(b, t, s, d_model, n_heads):
    right = {{
        "parameters": 4 * d_model**2,
        "projection_flops": 4 * b * (t + s) * d_model**2,
        "score_flops": 2 * b * t * s * d_model,
        "mixing_flops": 2 * b * t * s * d_model,
        "weight_numbers": b * n_heads * t * s,
    }}
    return right | {wrong}
"""

LEAK = """
def looks_ahead(attend, x):
    before = attend(x)
    for i in range(1, x.shape[1]):
        changed = x.clone()
        {change}
        moved = (attend(changed) - before).abs(){watched}
        if {found}:
            return True
    return False
"""


def _leak(
    change: str = "changed[:, i:] = 1.0 - 2.0 * x[:, i:]",
    watched: str = "[:, :i]",
    found: str = "(moved > 1e-5).any()",
) -> str:
    return LEAK.format(change=change, watched=watched, found=found)


def _rank(body: str) -> str:
    return _body("def factor_scores(scores, d_head):", body)


PAD = (
    "spare = d_head - q.shape[1]\nreturn F.pad(q, (0, max(spare, 0))), F.pad(k, (0, max(spare, 0)))"
)
SVD = "u, values, vh = torch.linalg.svd(scores, full_matrices=False)\n"

WRONG = {
    "03-causal-mask": {
        "diagonal hidden": (
            _causal("return torch.ones(t, s).tril(s - t - 1).bool()"),
            "hides each position from itself",
        ),
        "one step ahead": (
            _causal("return ~torch.ones(t, s).triu(s - t + 2).bool()"),
            "one step ahead",
        ),
        "top left": (_causal("return torch.ones(t, s).tril().bool()"), "the last t of the s"),
        "offset negated": (
            _causal("return torch.ones(t, s).tril(t - s).bool()"),
            "where it is s - t",
        ),
        "True means closed": (
            _causal("return torch.ones(t, s).triu(s - t + 1).bool()"),
            "True means may look",
        ),
        "the future": (
            _causal("return torch.ones(t, s).triu(s - t).bool()"),
            "what comes after",
        ),
        "only the own key": (
            _causal("return torch.eye(s).bool()[s - t :] if t <= s else torch.eye(t, s).bool()"),
            "only the own key",
        ),
        "floats": (_causal("return torch.ones(t, s).tril(s - t)"), "expected boolean"),
        "minus infinity": (
            _causal(
                "return torch.zeros(t, s).masked_fill(~torch.ones(t, s).tril(s - t).bool(), "
                'float("-inf"))'
            ),
            "expected boolean",
        ),
        "transposed": (
            _causal("return torch.ones(s, t).tril(s - t).bool()"),
            "expected shape",
        ),
        "everything open": (
            _causal("return torch.ones(t, s, dtype=torch.bool)"),
            None,
            "no mask at all; the message shows the first closed place",
        ),
        "never a blind query": (
            _causal("return torch.ones(t, s).tril(max(s - t, 0)).bool()"),
            None,
            "right wherever t does not exceed s; the message shows the case",
        ),
        "the library": (
            "\nimport plainformer.masks\n\ndef causal(t, s):\n"
            "    return plainformer.masks.causal_mask(t, s)\n",
            "do without",
        ),
    },
    "03-padding-mask": {
        "True means padding": (
            _padding("return torch.arange(s) >= lengths[:, None, None]"),
            "True means may look",
        ),
        "one too many": (
            _padding("return torch.arange(s) <= lengths[:, None, None]"),
            "one key too many",
        ),
        "one too few": (
            _padding("return torch.arange(s) < lengths[:, None, None] - 1"),
            "hides the last real key",
        ),
        "on the left": (
            _padding("return torch.arange(s) >= s - lengths[:, None, None]"),
            "puts the padding in front",
        ),
        "queries": (
            _padding("return torch.arange(s)[:, None] < lengths[:, None, None]"),
            "hides padded queries",
        ),
        "no axis for queries": (
            _padding("return torch.arange(s) < lengths[:, None]"),
            "no axis for the queries",
        ),
        "both sides": (
            _padding(
                "real = torch.arange(s) < lengths[:, None]\n"
                "return real[:, :, None] & real[:, None, :]"
            ),
            "the queries' axis has length 1",
        ),
        "never empty": (
            _padding("return torch.arange(s) < lengths.clamp(min=1)[:, None, None]"),
            "a length of 0 leaves nothing open",
        ),
        "floats": (
            _padding("return (torch.arange(s) < lengths[:, None, None]).float()"),
            "expected boolean",
        ),
        "as long as the longest": (
            _padding("return torch.arange(int(lengths.max())) < lengths[:, None, None]"),
            "expected shape",
        ),
        "not broadcast": (
            _padding("return (torch.arange(s) < lengths)[:, None]"),
            "number of axes differs",
        ),
        "lengths changed": (
            _padding(
                "mask = torch.arange(s) < lengths[:, None, None]\n"
                "lengths.clamp_(min=1)\nreturn mask"
            ),
            "changed its argument",
        ),
    },
    "03-masked-softmax": {
        "after the softmax": (
            _masked("return scores.softmax(dim=-1) * mask"),
            "after the softmax",
        ),
        "after the softmax, divided again": (
            _masked(
                "weights = scores.softmax(dim=-1) * mask\n"
                "return weights / weights.sum(dim=-1, keepdim=True)"
            ),
            "divides again",
        ),
        "divided again, never by zero": (
            _masked(
                "weights = scores.softmax(dim=-1) * mask\n"
                "return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)"
            ),
            None,
            "zeros where an open score lies far below a closed one; the message shows the case",
        ),
        "scores times mask": (
            _masked("return (scores * mask).softmax(dim=-1)"),
            "multiplies the scores by the mask",
        ),
        "scores times mask, zeroed": (
            _masked("return (scores * mask).softmax(dim=-1) * mask"),
            None,
            "a hole as in masking late, but other numbers; the message shows them",
        ),
        "NaN rows": (
            _masked('return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)'),
            "gives NaN where a query sees nothing",
        ),
        "uniform rows": (
            _masked(
                "return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)"
            ),
            "the same weight where a query sees nothing",
        ),
        "an added -inf": (
            _masked(
                "bias = torch.zeros(mask.shape).masked_fill(~mask, float('-inf'))\n"
                "return (scores + bias).softmax(dim=-1).nan_to_num()"
            ),
            "NaN or infinite",
        ),
        "-1e9": (
            _masked("return scores.masked_fill(~mask, -1e9).softmax(dim=-1) * mask"),
            "-1e9 in the masked places",
        ),
        "-100": (
            _masked("return scores.masked_fill(~mask, -100.0).softmax(dim=-1) * mask"),
            "-100 in the masked places",
        ),
        "minus 1e9": (
            _masked("return (scores - 1e9 * ~mask).softmax(dim=-1) * mask"),
            "-1e9 in the masked places",
        ),
        "-1e9, nothing after it": (
            _masked("return scores.masked_fill(~mask, -1e9).softmax(dim=-1)"),
            "nothing after it",
        ),
        "clamped to 12": (
            _masked(
                "low = torch.finfo(scores.dtype).min\n"
                "return scores.clamp(-12, 12).masked_fill(~mask, low).softmax(-1) * mask"
            ),
            None,
            "scores made alike; the message shows the case",
        ),
        "clamped to 50": (
            _masked(
                "low = torch.finfo(scores.dtype).min\n"
                "return scores.clamp(-50, 50).masked_fill(~mask, low).softmax(-1) * mask"
            ),
            None,
            "scores made alike; the message shows the case",
        ),
        "clamped powers": (
            _masked(
                "e = scores.clamp(-80, 80).exp() * mask\n"
                "return e / e.sum(-1, keepdim=True).clamp(min=1e-38)"
            ),
            None,
            "scores made alike; the message shows the case",
        ),
        "closed powers left to overflow": (
            _masked(
                "best = scores.masked_fill(~mask, float('-inf')).amax(-1, keepdim=True)\n"
                "best = best.masked_fill(best == float('-inf'), 0.0)\n"
                "e = torch.where(mask, (scores - best).exp(), 0.0)\n"
                "total = e.sum(-1, keepdim=True)\n"
                "return e / total.masked_fill(total == 0, 1.0)"
            ),
            "NaN or infinite",
        ),
        "powers without a maximum": (
            _masked(
                "e = torch.where(mask, scores.exp(), 0.0)\n"
                "return e / e.sum(-1, keepdim=True).clamp(min=1e-38)"
            ),
            None,
            "powers that vanish or overflow; the message shows the case",
        ),
        "inverted": (
            _masked('return scores.masked_fill(mask, float("-inf")).softmax(-1).nan_to_num()'),
            "read the other way round",
        ),
        "ignored": (_masked("return scores.softmax(dim=-1)"), "without the mask"),
        "down the columns": (
            _masked('return scores.masked_fill(~mask, float("-inf")).softmax(-2).nan_to_num()'),
            "down the columns",
        ),
        "cut off from the scores": (
            _masked(
                "floor = torch.finfo(scores.dtype).min\n"
                "return (scores.masked_fill(~mask, floor).softmax(-1) * mask).detach()"
            ),
            "no gradient comes back",
        ),
        "in place": (
            _masked(
                "scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)\n"
                "return scores.softmax(dim=-1) * mask"
            ),
            "changed its argument",
        ),
        "only masks as large as the scores": (
            _masked(
                "low = scores.clone()\nlow[~mask] = torch.finfo(scores.dtype).min\n"
                "return low.softmax(-1) * mask"
            ),
            "stopped with",
        ),
        "the library": (
            _masked(
                "s = scores.shape[-1]\n"
                "return attention_weights(scores * s**0.5, torch.eye(s), mask)"
            ),
            "do without",
        ),
    },
    "03-split-merge-heads": {
        "cut by reshape": (
            _split_merge("return x.reshape(x.shape[0], n_heads, x.shape[1], -1)"),
            "without a transpose",
        ),
        "cut and glued by reshape": (
            _split_merge(
                "return x.reshape(x.shape[0], n_heads, x.shape[1], -1)",
                "b, h, t, d = heads.shape\nreturn heads.reshape(b, t, h * d)",
            ),
            "reshape",
        ),
        "glued by reshape": (
            _split_merge(merge="b, h, t, d = heads.shape\nreturn heads.reshape(b, t, h * d)"),
            "without moving their axis back",
        ),
        "interleaved": (
            _split_merge(
                'return rearrange(x, "b t (d h) -> b h t d", h=n_heads)',
                'return rearrange(heads, "b h t d -> b t (d h)")',
            ),
            "columns stand together",
        ),
        "interleaved on the way back": (
            _split_merge(merge='return rearrange(heads, "b h t d -> b t (d h)")'),
            "one number of each head in turn",
        ),
        "not moved": (
            _split_merge("return x.reshape(*x.shape[:2], n_heads, -1)"),
            "the heads' axis belongs before",
        ),
        "heads transposed": (
            _split_merge(f"return ({RIGHT_SPLIT}).mT"),
            "in each other's place",
        ),
        "heads added": (
            _split_merge(merge="return heads.sum(dim=1)"),
            "adds the heads up",
        ),
        "view of a transposed tensor": (
            _split_merge(
                merge="b, h, t, d = heads.shape\nreturn heads.transpose(1, 2).view(b, t, h * d)"
            ),
            "stopped with",
        ),
        "merged into the tokens": (
            _split_merge(merge="return heads.flatten(1, 2)"),
            "expected shape",
        ),
    },
    "03-multi-head-attention": {
        "cut by reshape": (_heads(split=CUT, merge=CUT_BACK), "some of the tokens"),
        "cut by reshape, merged rightly": (_heads(split=CUT), "it merges rightly"),
        "glued by reshape": (_heads(merge=CUT_BACK), "without moving their axis back"),
        "root of d_model": (_heads(divisor="d_model"), "sqrt(d_model)"),
        "unscaled": (_heads(divisor="1"), "without dividing"),
        "divided by n_heads": (
            _heads(divisor="n_heads"),
            None,
            "another number for the width; the message shows where it differs",
        ),
        "no w_o": (
            _heads().replace(" @ w_o", ""),
            "w_o is missing",
        ),
        "one head": (
            _body(
                "def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):",
                "if mask is not None:\n    mask = mask.expand(len(x), n_heads, *mask.shape[-2:])"
                "[:, 0]\nreturn dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask) @ w_o",
            ),
            "n_heads plays no part",
        ),
        "mask ignored": (_heads(mask="mask = None"), "without the mask"),
        "mask inverted": (
            _heads(
                mask="if mask is not None:\n    mask = ~mask\n"
                "    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)"
            ),
            "the other way round",
        ),
        "NaN rows": (
            _heads(
                mask="if mask is not None:\n    scores = scores.masked_fill(~mask, float('-inf'))",
                weights="scores.softmax(-1)",
            ),
            "gives NaN where a query sees nothing",
        ),
        "mask after the softmax": (
            _heads(mask=""),
            "after the softmax",
        ),
        "queries for keys": (
            _heads().replace("(w_q, w_k, w_v)", "(w_k, w_q, w_v)"),
            "q and k in each other's place",
        ),
        "keys for values": (
            _heads().replace("(w_q, w_k, w_v)", "(w_q, w_v, w_k)"),
            "in each other's place",
        ),
        "weights transposed": (
            _heads().replace("x @ w)", "x @ w.T)").replace("@ w_o", "@ w_o.T"),
            "transposed weights",
        ),
        "interleaved": (
            _heads(
                split="rearrange(x @ w, 'b t (d h) -> b h t d', h=n_heads)",
                merge="rearrange(heads, 'b h t d -> b t (d h)')",
            ),
            "columns stand together",
        ),
        "split before the projection": (
            _body(
                "def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):",
                "split = rearrange(x, 'b t (h d) -> b h t d', h=n_heads)\n"
                "out = dot_product_attention(split @ w_q, split @ w_k, split @ w_v, mask)\n"
                "return rearrange(out, 'b h t d -> b t (h d)') @ w_o",
            ),
            "stopped with",
        ),
        "heads averaged": (
            _heads(merge="heads.mean(dim=1)"),
            "stopped with",
        ),
        "cut off": (
            _heads().replace(" @ w_o", ".detach() @ w_o"),
            None,
            "a way cut for four of five; the message shows which",
        ),
        "the library": (
            _body(
                "def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):",
                "layer = MultiHeadAttention(x.shape[-1], n_heads, bias=False)\n"
                "return layer(x, mask=mask)",
            ),
            "do without",
        ),
    },
    "03-find-the-bug-heads": {
        "nothing mended": (_bug(), "the draft as it stood"),
        "only the heads": (_bug(split=SPLIT), "The division and the mask"),
        "only the division": (_bug(divisor="d_head"), "and the mask, is not"),
        "only the mask": (_bug(diagonal=1), "what the scores are divided by, is not"),
        "the mask is left": (_bug(split=SPLIT, divisor="d_head"), "one step ahead"),
        "the division is left": (_bug(split=SPLIT, diagonal=1), "sqrt(d_model)"),
        "the heads are left": (_bug(divisor="d_head", diagonal=1), "some of the tokens"),
        "diagonal closed": (
            _bug(split=SPLIT, divisor="d_head", diagonal=0),
            "NaN or infinite",
        ),
        "split mended, merge not": (
            _bug(split=SPLIT, divisor="d_head", diagonal=1, merge=CUT_BACK),
            "without moving their axis back",
        ),
        "merge mended, split not": (
            _bug(divisor="d_head", diagonal=1, merge=MERGE),
            "it merges rightly",
        ),
        "divided by the root of n_heads": (
            _bug(split=SPLIT, divisor="n_heads", diagonal=1),
            None,
            "another number for the width; the message shows where the numbers differ",
        ),
        "no mask at all": (
            _bug(split=SPLIT, divisor="d_head", diagonal=99),
            None,
            "nothing closed; the message shows where the numbers differ",
        ),
        "the library's layer": (
            "\ndef causal_heads(x, w_q, w_k, w_v, w_o, n_heads):\n"
            "    layer = MultiHeadAttention(x.shape[-1], n_heads)\n"
            "    return layer(x, mask=causal_mask(x.shape[1]))\n",
            "do without",
        ),
    },
    "03-attention-cost": {
        "h times the work": (
            COST.format(
                wrong="{'score_flops': n_heads * right['score_flops'],"
                " 'mixing_flops': n_heads * right['mixing_flops']}"
            ),
            "h times too often",
        ),
        "one head's work": (
            COST.format(
                wrong="{'score_flops': right['score_flops'] // n_heads,"
                " 'mixing_flops': right['mixing_flops'] // n_heads}"
            ),
            "of one head",
        ),
        "one FLOP": (
            COST.format(wrong="{k: v // 2 for k, v in right.items() if 'flops' in k}"),
            "a multiply-add is 2",
        ),
        "all at t": (
            COST.format(wrong="{'projection_flops': 8 * b * t * d_model**2}"),
            "there are s of them",
        ),
        "three projections": (
            COST.format(
                wrong="{'parameters': 3 * d_model**2,"
                " 'projection_flops': 2 * b * (t + 2 * s) * d_model**2}"
            ),
            "the fourth",
        ),
        "h times the parameters": (
            COST.format(wrong="{'parameters': n_heads * right['parameters']}"),
            "each has d_model / h",
        ),
        "one table": (
            COST.format(wrong="{'weight_numbers': b * t * s}"),
            "each head has its own",
        ),
        "no batch": (
            COST.format(
                wrong="{k: v // b for k, v in right.items() if k != 'parameters'}",
            ),
            "of one sequence",
        ),
        "with biases": (
            COST.format(wrong="{'parameters': 4 * d_model**2 + 4 * d_model}"),
            "has none",
        ),
        "t squared": (
            COST.format(
                wrong="{'score_flops': 2 * b * t * t * d_model,"
                " 'mixing_flops': 2 * b * t * t * d_model, 'weight_numbers': b * n_heads * t * t}"
            ),
            None,
            "self-attention in place of cross-attention: right numbers are kept back here",
        ),
        "a key missing": (
            COST.format(wrong="{}").replace(
                '        "mixing_flops": 2 * b * t * s * d_model,\n', ""
            ),
            "missing: mixing_flops",
        ),
        "measured": (
            "\ndef attention_cost(b, t, s, d_model, n_heads):\n"
            "    layer = MultiHeadAttention(d_model, n_heads, bias=False)\n"
            "    with FlopCounterMode(display=False) as counter, torch.no_grad():\n"
            "        layer(torch.zeros(b, t, d_model), torch.zeros(b, s, d_model))\n"
            "    pairs = counter.get_flop_counts()['Global'][torch.ops.aten.bmm]\n"
            "    return {\n"
            "        'parameters': sum(p.numel() for p in layer.parameters()),\n"
            "        'projection_flops': counter.get_total_flops() - pairs,\n"
            "        'score_flops': pairs // 2,\n"
            "        'mixing_flops': pairs // 2,\n"
            "        'weight_numbers': b * n_heads * t * s,\n"
            "    }\n",
            "do without",
        ),
    },
    "03-catch-the-leak": {
        "always yes": ("\ndef looks_ahead(attend, x):\n    return True\n", None, "no test at all"),
        "only the last token changed": (
            "\ndef looks_ahead(attend, x):\n    changed = x.clone()\n    changed[:, -1] += 5.0\n"
            "    moved = (attend(changed) - attend(x)).abs()[:, :-1]\n"
            "    return bool((moved > 1e-5).any())\n",
            "looks at the last position",
        ),
        "only the first output watched": (
            "\ndef looks_ahead(attend, x):\n    changed = x.clone()\n    changed[:, 1:] += 5.0\n"
            "    changed[:, 1:] *= 2.0\n"
            "    return bool(((attend(changed) - attend(x))[:, 0].abs() > 1e-5).any())\n",
            "watches the first output only",
        ),
        "own token changed, too": (
            _leak(watched="[:, : i + 1]"),
            "whose own token was changed",
        ),
        "equal to the last bit": (_leak(found="(moved > 0).any()"), "rounding"),
        "only large leaks": (_leak(found="(moved > 0.01).any()"), "small leaks"),
        "first sequence": (
            _leak(watched="[0, :i]"),
            "the second sequence",
        ),
        "each sequence alone": (
            "\ndef looks_ahead(attend, x):\n"
            "    for n in range(len(x)):\n"
            "        one = x[n : n + 1]\n"
            "        for i in range(1, x.shape[1]):\n"
            "            changed = one.clone()\n"
            "            changed[:, i:] = 1.0 - 2.0 * one[:, i:]\n"
            "            moved = (attend(changed) - attend(one))[:, :i].abs()\n"
            "            if (moved > 1e-5).any():\n"
            "                return True\n"
            "    return False\n",
            "run the whole batch",
        ),
        "the last cut missing": (
            _leak().replace("range(1, x.shape[1])", "range(1, x.shape[1] - 1)"),
            "the last position alone",
        ),
        "the first cut missing": (
            _leak().replace("range(1, x.shape[1])", "range(2, x.shape[1])"),
            "never watches the first output",
        ),
        "one cut in the middle": (
            _leak().replace("range(1, x.shape[1])", "[x.shape[1] // 2]"),
            None,
            "leaks that do not cross the cut pass; the message names the layer",
        ),
        "only upwards": (
            _leak(found="moved.max() > 1e-5").replace(".abs()", ""),
            None,
            "a single number that falls passes; the message names the layer",
        ),
        "the mean of the moves": (
            _leak(found="moved.mean() > 1e-5"),
            None,
            "a faint leak at few numbers passes; the message names the layer",
        ),
        "ten times too deaf": (
            _leak(found="(moved > 1e-4).any()"),
            None,
            "a faint leak passes; the message names the layer",
        ),
        "the sign turned": (
            _leak(change="changed[:, i:] = -x[:, i:]"),
            None,
            "a square does not see it; the message names the layer",
        ),
        "one added": (
            _leak(change="changed[:, i:] += 1.0"),
            None,
            "a layer that takes the mean away does not see it; the message names the layer",
        ),
        "doubled": (
            _leak(change="changed[:, i:] *= 2.0"),
            None,
            "a sign does not see it; the message names the layer",
        ),
        "shorter texts": (
            "\ndef looks_ahead(attend, x):\n"
            "    whole = attend(x)\n"
            "    beginnings = [attend(x[:, :i]) for i in range(1, x.shape[1])]\n"
            "    return any(\n"
            "        (whole[:, : part.shape[1]] - part).abs().max() > 1e-5 for part in beginnings\n"
            "    )\n",
            "keep the length",
        ),
        "slopes": (
            "\ndef looks_ahead(attend, x):\n"
            "    x = x.clone().requires_grad_()\n"
            "    out = attend(x)\n"
            "    pull = torch.linspace(1.0, 2.0, x.shape[-1])\n"
            "    for n in range(x.shape[0]):\n"
            "        for i in range(x.shape[1] - 1):\n"
            "            seen = (out[n, i] * pull).sum()\n"
            "            (slope,) = torch.autograd.grad(\n"
            "                seen, x, retain_graph=True, allow_unused=True\n"
            "            )\n"
            "            if slope is not None and slope[:, i + 1 :].abs().max() > 1e-5:\n"
            "                return True\n"
            "    return False\n",
            None,
            "a step has slope 0 and leaks; the message names the layer",
        ),
        "the other way round": (
            _leak()
            .replace("return True", "return None")
            .replace("return False", "return True")
            .replace("return None", "return False"),
            "opposite answer",
        ),
        "one step only": (
            _leak(change="changed[:, i] = 1.0 - 2.0 * x[:, i]", watched="[:, i - 1]"),
            "one step ahead",
        ),
        "the past changed": (
            _leak(change="changed[:, :i] = 1.0 - 2.0 * x[:, :i]"),
            None,
            "watches what it changed itself: nearly always True",
        ),
        "the future shuffled": (
            _leak(change="changed[:, i:] = x[:, i:].flip(1)"),
            None,
            "sums do not see a shuffle; the message names the layer that slips through",
        ),
        "NaN as the future": (
            _leak(
                change="changed[:, i:] = float('nan')",
                found="~torch.isclose(moved, torch.zeros(()), rtol=0, atol=1e-5).all()",
            ),
            None,
            "0 times NaN is NaN: honest layers are accused; the message names one",
        ),
        "the mean moved": (
            _leak(found="moved.mean() > 1e-3"),
            "small leaks",
        ),
        "a tensor": (
            _leak().replace("return True", "return torch.tensor([1.0])"),
            "expected a number",
        ),
        "x changed": (
            _leak(change="changed = x\n        changed[:, i:] = 1.0 - 2.0 * x[:, i:]"),
            None,
            "changes the batch it was lent; which check sees it first depends on the layer",
        ),
    },
    "03-score-rank": {
        "root forgotten": (
            _rank(SVD + "q, k = u[:, :d_head] * values[:d_head], vh[:d_head].mT\n" + PAD),
            "too small by sqrt(d_head)",
        ),
        "divided by the root": (
            _rank(
                SVD + "q = u[:, :d_head] * values[:d_head] / d_head**0.5\n"
                "k = vh[:d_head].mT\n" + PAD
            ),
            "too small by d_head",
        ),
        "the smallest": (
            _rank(
                "u, values, vh = torch.linalg.svd(scores * d_head**0.5, full_matrices=False)\n"
                "q, k = u[:, -d_head:] * values[-d_head:], vh[-d_head:].mT\n" + PAD
            ),
            "keeps the smallest",
        ),
        "values twice": (
            _rank(
                SVD + "q = u[:, :d_head] * values[:d_head] * d_head**0.5\n"
                "k = vh[:d_head].mT * values[:d_head]\n" + PAD
            ),
            "has them twice",
        ),
        "values forgotten": (
            _rank(SVD + "q, k = u[:, :d_head] * d_head**0.5, vh[:d_head].mT\n" + PAD),
            "leaves the singular values out",
        ),
        "first columns": (
            _rank(
                "s = scores.shape[1]\nq = scores[:, :d_head] * d_head**0.5\n"
                "k = torch.eye(s)[:, :d_head]\n" + PAD
            ),
            "keeps the first d_head columns",
        ),
        "v not transposed": (
            _rank(
                "u, values, v = torch.linalg.svd(scores * d_head**0.5, full_matrices=False)\n"
                "q, k = u[:, :d_head] * values[:d_head], v[:, :d_head]\n" + PAD
            ),
            "shapes of q and k",
        ),
        "not filled up": (
            _rank(
                "u, values, vh = torch.linalg.svd(scores * d_head**0.5, full_matrices=False)\n"
                "return u[:, :d_head] * values[:d_head], vh[:d_head].mT"
            ),
            "shapes of q and k",
        ),
        "full width": (
            _rank("return scores * scores.shape[1]**0.5, torch.eye(scores.shape[1])"),
            "shapes of q and k",
        ),
        "swapped": (
            _rank(
                "u, values, vh = torch.linalg.svd(scores * d_head**0.5, full_matrices=False)\n"
                "k, q = u[:, :d_head] * values[:d_head], vh[:d_head].mT\n" + PAD
            ),
            "shapes of q and k",
        ),
    },
}
