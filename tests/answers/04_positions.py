"""Known answers to chapter 04: right ones written in many ways, wrong ones that look reasonable.

A right answer must get every point. A wrong one is a source and the words that its author must
see; or a source, None, and the reason why no message can tell more than where the numbers differ.
"""

RIGHT = {
    "04-is-equivariant": {
        "every order": """
import itertools

def is_equivariant(layer, x):
    before = layer(x)
    for order in itertools.permutations(range(x.shape[1])):
        order = list(order)
        if not torch.allclose(layer(x[:, order]), before[:, order], rtol=0, atol=1e-5):
            return False
    return True
""",
        "neighbours exchanged": """
def is_equivariant(layer, x):
    worst = 0.0
    for i in range(x.shape[1] - 1):
        moved = x.clone()
        moved[:, i], moved[:, i + 1] = x[:, i + 1], x[:, i]
        out, before = layer(moved), layer(x)
        want = before.clone()
        want[:, i], want[:, i + 1] = before[:, i + 1], before[:, i]
        worst = max(worst, (out - want).abs().max().item())
    return worst <= 1e-5
""",
        "shuffled back": """
def is_equivariant(layer, x):
    generator = torch.Generator().manual_seed(1)
    plain = layer(x.clone())
    for _ in range(200):
        order = torch.randperm(x.shape[1], generator=generator)
        back = order.argsort()
        if (layer(x[:, order])[:, back] - plain).abs().max() > 1e-5:
            return False
    return True
""",
        "matrices": """
def is_equivariant(layer, x):
    t, found = x.shape[1], []
    for i in range(t):
        for j in range(t):
            p = torch.eye(t)
            p[[i, j]] = p[[j, i]]
            found.append((layer(p @ x) - p @ layer(x)).abs().amax() < 1e-5)
    return bool(torch.stack(found).all())
""",
    },
    "04-sinusoidal": {
        "in place": """
def sinusoidal(positions, d_model, base=10000.0):
    table = torch.zeros(len(positions), d_model)
    theta = torch.exp(-math.log(base) * torch.arange(0, d_model, 2) / d_model)
    table[:, 0::2] = torch.sin(positions[:, None] * theta)
    table[:, 1::2] = torch.cos(positions[:, None] * theta)
    return table
""",
        "loops": """
def sinusoidal(positions, d_model, base=10000.0):
    rows = []
    for p in positions.tolist():
        row = []
        for i in range(d_model // 2):
            angle = p / base ** (2 * i / d_model)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows)
""",
        "float64 and einsum": """
def sinusoidal(positions, d_model, base=10000.0):
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    angle = torch.einsum("t,p->tp", positions.double(), base ** (-2 * pair / d_model))
    return rearrange([angle.sin(), angle.cos()], "two t p -> t (p two)")
""",
        "a cosine is a sine a quarter later": """
def sinusoidal(positions, d_model, base=10000.0):
    column = torch.arange(d_model)
    theta = torch.tensor(base).pow(-(column - column % 2) / d_model)
    return torch.sin(positions.unsqueeze(-1) * theta + (column % 2) * math.pi / 2)
""",
        "complex numbers": """
def sinusoidal(positions, d_model, base=10000.0):
    theta = base ** (-torch.arange(0, d_model, 2).double() / d_model)
    hands = torch.polar(torch.ones(len(positions), len(theta)).double(), positions[:, None] * theta)
    return torch.view_as_real(hands).flip(-1).flatten(1).float()
""",
    },
    "04-shift-rotation": {
        "block_diag": """
def shift_matrix(k, freqs):
    blocks = []
    for theta in freqs:
        c, s = torch.cos(k * theta), torch.sin(k * theta)
        blocks.append(torch.stack([torch.stack([c, s]), torch.stack([-s, c])]))
    return torch.block_diag(*blocks)
""",
        "numbers": """
def shift_matrix(k, freqs):
    n = len(freqs)
    matrix = torch.zeros(2 * n, 2 * n)
    for i, theta in enumerate(freqs.tolist()):
        matrix[2 * i, 2 * i] = matrix[2 * i + 1, 2 * i + 1] = math.cos(k * theta)
        matrix[2 * i, 2 * i + 1] = math.sin(k * theta)
        matrix[2 * i + 1, 2 * i] = -math.sin(k * theta)
    return matrix
""",
        "a matrix exponential": """
def shift_matrix(k, freqs):
    quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).to(freqs)
    return torch.matrix_exp(k * torch.kron(torch.diag(freqs), quarter))
""",
        "kron": """
def shift_matrix(k, freqs):
    freqs = freqs.double()
    straight = torch.eye(2, dtype=torch.float64)
    across = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    angle = k * freqs
    return torch.kron(angle.cos().diag(), straight) + torch.kron(angle.sin().diag(), across)
""",
        "turns of the unit vectors": """
def shift_matrix(k, freqs):
    eye = torch.eye(2 * len(freqs)).to(freqs)
    # rotate_interleaved turns (cos, sin); here the sine comes first: the other way round
    return rotate_interleaved(eye, torch.full((len(eye),), float(-k)), freqs).T
""",
    },
    "04-sum-or-concat": {
        "split": """
def as_a_sum(words, places, w):
    upper, lower = w.split([words.shape[1], places.shape[1]])
    return torch.matmul(words, upper), torch.matmul(places, lower)

def as_a_concatenation(w):
    return w.repeat(2, 1)
""",
        "padded with zeros": """
def as_a_sum(words, places, w):
    d_word, d_place = words.shape[1], places.shape[1]
    return F.pad(words, (0, d_place)) @ w, F.pad(places, (d_word, 0)) @ w

def as_a_concatenation(w):
    return torch.vstack((w, w))
""",
        "loops": """
def as_a_sum(words, places, w):
    d_word = words.shape[1]
    word_table = torch.stack([sum(word[i] * w[i] for i in range(d_word)) for word in words])
    rest = w[d_word:]
    place_table = torch.stack([(place[:, None] * rest).sum(dim=0) for place in places])
    return [word_table, place_table]

def as_a_concatenation(w):
    d_model, d_out = w.shape
    result = torch.empty(2 * d_model, d_out)
    result[:d_model] = w
    result[d_model:] = w
    return result
""",
    },
    "04-relative-bias-buckets": {
        "loops": """
def bucket_bias(table, t, s, max_distance):
    n, h = table.shape
    half = n // 2
    rows = []
    for i in range(s - t, s):
        row = []
        for j in range(s):
            r = max(i - j, 0)
            if r >= half:
                r = half + int(half * math.log(r / half) / math.log(max_distance / half))
            row.append(table[min(r, n - 1)])
        rows.append(torch.stack(row))
    return torch.stack(rows).permute(2, 0, 1)
""",
        "a list of buckets by distance": """
def bucket_bias(table, t, s, max_distance):
    n = table.shape[0]
    half = n // 2
    r = torch.arange(max(s, half + 1), dtype=torch.float64)
    bucket = r.clone()
    wide = half + half * torch.log(r[half:] / half) / math.log(max_distance / half)
    bucket[half:] = wide.floor().clamp(max=n - 1)
    back = torch.arange(s - t, s)[:, None] - torch.arange(s)[None]
    return rearrange(table[bucket.long()[back.clamp(min=0)]], "t s h -> h t s")
""",
        "one-hot": """
def bucket_bias(table, t, s, max_distance):
    n, half = len(table), len(table) // 2
    r = (torch.arange(s)[s - t :, None] - torch.arange(s)).clamp_min(0).float()
    ratio = torch.log(r.clamp_min(1) / half) / math.log(max_distance / half)
    bucket = torch.where(r < half, r, half + (half * ratio).floor())
    hot = F.one_hot(bucket.clamp(0, n - 1).long(), n).to(table)
    return torch.einsum("tsn,nh->hts", hot, table)
""",
        "the whole square, cut": """
def bucket_bias(table, t, s, max_distance):
    half = table.size(0) // 2
    i = torch.arange(s)
    r = torch.relu(i[:, None] - i[None, :])
    far = half + torch.floor(half * torch.log(torch.maximum(r, torch.tensor(half)) / half)
                             / math.log(max_distance / half))
    bucket = torch.minimum(torch.where(r < half, r.float(), far), torch.tensor(2.0 * half - 1))
    square = F.embedding(bucket.long(), table)
    return square[s - t :].movedim(-1, 0)
""",
    },
    "04-alibi": {
        "loops": """
def alibi(n_heads, t, s):
    bias = torch.zeros(n_heads, t, s)
    for n in range(n_heads):
        for i in range(t):
            for j in range(s):
                bias[n, i, j] = -(2 ** (-8 * (n + 1) / n_heads)) * abs(s - t + i - j)
    return bias
""",
        "powers of the first slope": """
def alibi(n_heads, t, s):
    first = 2 ** (-8 / n_heads)
    slopes = torch.tensor([first**n for n in range(1, n_heads + 1)])
    distance = (torch.arange(s) - torch.arange(s - t, s).unsqueeze(1)).abs().float()
    return -torch.einsum("h,ts->hts", slopes, distance)
""",
        "the whole square, cut": """
def alibi(n_heads, t, s):
    i = torch.arange(s).double()
    square = -torch.abs(i.view(s, 1) - i.view(1, s))
    slopes = torch.exp2(-8 * torch.arange(1, n_heads + 1).double() / n_heads)
    return (slopes.view(-1, 1, 1) * square)[:, s - t :]
""",
    },
    "04-rope": {
        "filled in": """
def rope(x, positions, freqs):
    angle = positions[:, None] * freqs
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * angle.cos() - x[..., 1::2] * angle.sin()
    out[..., 1::2] = x[..., 0::2] * angle.sin() + x[..., 1::2] * angle.cos()
    return out
""",
        "complex numbers": """
def rope(x, positions, freqs):
    points = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    angle = torch.outer(positions.to(freqs), freqs)
    return torch.view_as_real(points * torch.polar(torch.ones_like(angle), angle)).flatten(-2)
""",
        "x cos plus partner sin": """
def rope(x, positions, freqs):
    angle = (positions[:, None] * freqs).repeat_interleave(2, dim=-1)
    partner = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * angle.cos() + partner * angle.sin()
""",
        "one matrix a position": """
def rope(x, positions, freqs):
    rows = []
    for n, p in enumerate(positions.tolist()):
        matrix = shift_rotation_free(p, freqs)
        rows.append(x[..., n, :] @ matrix.T)
    return torch.stack(rows, dim=-2)

def shift_rotation_free(p, freqs):
    blocks = []
    for theta in freqs:
        c, s = torch.cos(p * theta), torch.sin(p * theta)
        blocks.append(torch.stack([torch.stack([c, -s]), torch.stack([s, c])]))
    return torch.block_diag(*blocks)
""",
        "einops and einsum": """
def rope(x, positions, freqs):
    angle = (positions.double()[:, None] * freqs.double()).to(x.dtype)
    c, s = angle.cos(), angle.sin()
    turn = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)  # t p 2 2
    pairs = rearrange(x, "... t (p two) -> ... t p two", two=2)
    return rearrange(torch.einsum("tpij,...tpj->...tpi", turn, pairs), "... p two -> ... (p two)")
""",
    },
    "04-rope-layouts": {
        "einops": """
def half_split_rows(weight, n_heads):
    return rearrange(weight, "(h p two) ... -> (h two p) ...", h=n_heads, two=2)
""",
        "an index": """
def half_split_rows(weight, n_heads):
    rows = torch.arange(len(weight)).reshape(n_heads, -1)
    order = torch.cat([rows[:, 0::2], rows[:, 1::2]], dim=1).flatten()
    return weight[order]
""",
        "head by head": """
def half_split_rows(weight, n_heads):
    parts = []
    for head in weight.chunk(n_heads):
        parts += [head[0::2], head[1::2]]
    return torch.cat(parts)
""",
        "in place on a copy": """
def half_split_rows(weight, n_heads):
    out = weight.clone()
    d_head = weight.shape[0] // n_heads
    for start in range(0, len(weight), d_head):
        middle = start + d_head // 2
        out[start:middle] = weight[start : start + d_head : 2]
        out[middle : start + d_head] = weight[start + 1 : start + d_head : 2]
    return out
""",
    },
    "04-rope-offset": {
        "one token at a time": """
def go_on(q, k, v, kept_k, kept_v, freqs):
    outputs = []
    for i in range(q.shape[2]):
        here = torch.tensor([kept_k.shape[2]])
        kept_k = torch.cat([kept_k, rotate_interleaved(k[:, :, i : i + 1], here, freqs)], dim=2)
        kept_v = torch.cat([kept_v, v[:, :, i : i + 1]], dim=2)
        asks = rotate_interleaved(q[:, :, i : i + 1], here, freqs)
        outputs.append(dot_product_attention(asks, kept_k, kept_v))
    return torch.cat(outputs, dim=2), kept_k, kept_v
""",
        "q and k at once, softmax by hand": """
def go_on(q, k, v, kept_k, kept_v, freqs):
    b, h, n, d_head = kept_k.shape
    t = q.shape[2]
    turned = rotate_interleaved(torch.stack([q, k]), n + torch.arange(t), freqs)
    all_k = torch.cat((kept_k, turned[1]), dim=2)
    all_v = torch.cat((kept_v, v), dim=2)
    scores = turned[0] @ all_k.mT / math.sqrt(d_head)
    later = torch.arange(n + t) > torch.arange(n, n + t)[:, None]
    weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
    return weights @ all_v, all_k, all_v
""",
        "PyTorch's attention, preallocated": """
def go_on(q, k, v, kept_k, kept_v, freqs):
    n, t = kept_v.size(2), v.size(2)
    where = torch.arange(n, n + t)
    all_k = kept_k.new_empty(*kept_k.shape[:2], n + t, kept_k.size(3))
    all_v = kept_v.new_empty(*kept_v.shape[:2], n + t, kept_v.size(3))
    all_k[:, :, :n], all_v[:, :, :n] = kept_k, kept_v
    all_k[:, :, n:], all_v[:, :, n:] = rotate_interleaved(k, where, freqs), v
    mask = torch.ones(t, n + t).tril(n).bool()
    turned = rotate_interleaved(q, where, freqs)
    return [F.scaled_dot_product_attention(turned, all_k, all_v, attn_mask=mask), all_k, all_v]
""",
    },
    "04-rope-scaling": {
        "loops": """
def interpolate(freqs, factor):
    return torch.stack([theta / factor for theta in freqs])

def ntk_aware(freqs, factor):
    n = freqs.numel()
    return torch.stack([theta * factor ** (-i / (n - 1)) for i, theta in enumerate(freqs)])

def by_parts(freqs, factor, length, slow, fast):
    out = []
    for theta in freqs:
        turns = length * theta / (2 * math.pi)
        if turns <= slow:
            out.append(theta / factor)
        elif turns >= fast:
            out.append(theta)
        else:
            gamma = (turns - slow) / (fast - slow)
            out.append(gamma * theta + (1 - gamma) * theta / factor)
    return torch.stack(out)
""",
        "linspace and lerp": """
def interpolate(freqs, factor):
    return freqs * (1 / factor)

def ntk_aware(freqs, factor):
    power = torch.linspace(0, 1, len(freqs), dtype=freqs.dtype)
    return freqs * torch.exp(-power * math.log(factor))

def by_parts(freqs, factor, length, slow, fast):
    wavelength = 2 * math.pi / freqs
    gamma = torch.clamp((length / wavelength - slow) / (fast - slow), 0.0, 1.0)
    return torch.lerp(freqs / factor, freqs, gamma)
""",
        "in place on a copy": """
def interpolate(freqs, factor):
    out = freqs.clone()
    out /= factor
    return out

def ntk_aware(freqs, factor):
    out = freqs.clone()
    for i in range(1, len(out)):
        out[i:] /= factor ** (1 / (len(out) - 1))
    return out

def by_parts(freqs, factor, length, slow, fast):
    ratio = length * freqs / math.tau
    out = (ratio - slow) / (fast - slow)
    out[ratio < slow] = 0.0
    out[ratio > fast] = 1.0
    return freqs / factor * (1 + out * (factor - 1))
""",
    },
}


def _body(head: str, body: str) -> str:
    return f"\n{head}\n    " + body.replace("\n", "\n    ") + "\n"


def _equivariant(body: str) -> str:
    return _body("def is_equivariant(layer, x):", body)


SWAPS = """before = layer(x)
for i in range(x.shape[1]):
    for j in range(i):
        order = torch.arange(x.shape[1])
        order[i], order[j] = j, i
        if {found}:
            return False
return True"""


def _swaps(found: str) -> str:
    return _equivariant(SWAPS.format(found=found))


WAVES = """pair = torch.arange(d_model // 2)
theta = {theta}
angle = {angle}
return {woven}"""


def _sinusoidal(
    theta: str = "base ** (-2 * pair / d_model)",
    angle: str = "positions[:, None] * theta",
    woven: str = "torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)",
) -> str:
    body = WAVES.format(theta=theta, angle=angle, woven=woven)
    return _body("def sinusoidal(positions, d_model, base=10000.0):", body)


BLOCKS = """blocks = []
for theta in {freqs}:
    c, s = torch.cos({angle}), torch.sin({angle})
    blocks.append(torch.stack([torch.stack([{first}]), torch.stack([{second}])]))
return torch.block_diag(*blocks)"""


def _shift(
    first: str = "c, s", second: str = "-s, c", angle: str = "k * theta", freqs: str = "freqs"
) -> str:
    body = BLOCKS.format(first=first, second=second, angle=angle, freqs=freqs)
    return _body("def shift_matrix(k, freqs):", body)


RIGHT_SUM = "d_word = words.shape[1]\nreturn words @ w[:d_word], places @ w[d_word:]"


def _sum_and_concat(first: str = RIGHT_SUM, second: str = "return torch.cat([w, w])") -> str:
    one = _body("def as_a_sum(words, places, w):", first)
    return one + _body("def as_a_concatenation(w):", second)


BUCKETS = """n, half = len(table), len(table) // 2
r = torch.arange({start}, {start} + t)[:, None] - torch.arange(s)
r = {r}
log = {log}
wide = ({wide}).long().clamp(max={top})
bucket = torch.where(r < half, r, wide)
return table[bucket]{axes}"""


def _buckets(
    start: str = "s - t",
    r: str = "r.clamp(min=0)",
    log: str = "(r.clamp(min=half) / half).log() / math.log(max_distance / half)",
    wide: str = "half + half * log",
    top: str = "n - 1",
    axes: str = ".permute(2, 0, 1)",
) -> str:
    body = BUCKETS.format(start=start, r=r, log=log, wide=wide, top=top, axes=axes)
    return _body("def bucket_bias(table, t, s, max_distance):", body)


def _alibi(
    slopes: str = "2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)",
    distance: str = "(torch.arange(s - t, s)[:, None] - torch.arange(s)).abs()",
    out: str = "-slopes[:, None, None] * distance",
) -> str:
    body = f"slopes = {slopes}\ndistance = {distance}\nreturn {out}"
    return _body("def alibi(n_heads, t, s):", body)


def _rope(
    angle: str = "positions[:, None] * freqs",
    pairs: str = "x[..., 0::2], x[..., 1::2]",
    turned: str = "a * c - b * s, a * s + b * c",
    out: str = "torch.stack(turned, dim=-1).flatten(-2)",
) -> str:
    body = f"angle = {angle}\nc, s = angle.cos(), angle.sin()\na, b = {pairs}\n"
    return _body("def rope(x, positions, freqs):", body + f"turned = [{turned}]\nreturn {out}")


def _rows(body: str) -> str:
    return _body("def half_split_rows(weight, n_heads):", body)


GO_ON = """n, t = kept_k.shape[-2], q.shape[-2]
positions = {positions}
turned = rotate_interleaved(k, positions, freqs)
asks = rotate_interleaved(q, positions, freqs)
{more}
k, v = torch.cat([kept_k, {new_k}], dim=-2), torch.cat([kept_v, v], dim=-2)
return dot_product_attention(asks, {looked_at}, v, {mask}), k, v"""


def _go_on(
    positions: str = "torch.arange(n, n + t)",
    more: str = "",
    new_k: str = "turned",
    looked_at: str = "k",
    mask: str = "causal_mask(t, n + t)",
) -> str:
    body = GO_ON.format(
        positions=positions, more=more or "pass", new_k=new_k, looked_at=looked_at, mask=mask
    )
    return _body("def go_on(q, k, v, kept_k, kept_v, freqs):", body)


EVEN = "return freqs / factor"
NTK = "n = len(freqs)\nreturn freqs / factor ** (torch.arange(n) / (n - 1))"
PARTS = """turns = length * freqs / (2 * math.pi)
gamma = ((turns - slow) / (fast - slow)).clamp(0, 1)
return gamma * freqs + (1 - gamma) * freqs / factor"""


def _scaling(even: str = EVEN, ntk: str = NTK, parts: str = PARTS) -> str:
    one = _body("def interpolate(freqs, factor):", even) + _body(
        "def ntk_aware(freqs, factor):", ntk
    )
    return one + _body("def by_parts(freqs, factor, length, slow, fast):", parts)


WRONG = {
    "04-is-equivariant": {
        "backwards only": (
            _equivariant("return bool((layer(x.flip(1)) - layer(x).flip(1)).abs().max() <= 1e-5)"),
            "the tokens read backwards",
        ),
        "turned round only": (
            _equivariant(
                "return all((layer(x.roll(k, 1)) - layer(x).roll(k, 1)).abs().max() <= 1e-5 "
                "for k in range(1, x.shape[1]))"
            ),
            "only turns the ring",
        ),
        "first and last": (
            _equivariant(
                "order = list(range(x.shape[1]))\norder[0], order[-1] = order[-1], order[0]\n"
                "return bool((layer(x[:, order]) - layer(x)[:, order]).abs().max() <= 1e-5)"
            ),
            "the first and the last token only",
        ),
        "first two": (
            _equivariant(
                "order = list(range(x.shape[1]))\norder[:2] = [1, 0]\n"
                "return bool((layer(x[:, order]) - layer(x)[:, order]).abs().max() <= 1e-5)"
            ),
            "the first two tokens only",
        ),
        "must stay": (
            _swaps("((layer(x[:, order]) - before).abs() > 1e-5).any()"),
            "do not move at all",
        ),
        "the wrong way back": (
            _equivariant(
                "before = layer(x)\nfor k in range(1, x.shape[1]):\n"
                "    out = layer(x.roll(k, 1))\n"
                "    if ((out - before.roll(-k, 1)).abs() > 1e-5).any():\n        return False\n"
                "return True"
            ),
            "the other way",
        ),
        "columns": (
            _equivariant(
                "return bool((layer(x.flip(-1)) - layer(x).flip(-1)).abs().max() <= 1e-5)"
            ),
            "the numbers within the tokens",
        ),
        "first sequence": (
            _swaps("((layer(x[:, order]) - before[:, order])[0].abs() > 1e-5).any()"),
            "the first sequence only",
        ),
        "sums": (
            _swaps("((layer(x[:, order]) - before).sum(dim=1).abs() > 1e-5).any()"),
            "sums over the positions",
        ),
        "exact": (
            _swaps("not torch.equal(layer(x[:, order]), before[:, order])"),
            "counts rounding",
        ),
        "coarse": (
            _swaps("((layer(x[:, order]) - before[:, order]).abs() > 0.05).any()"),
            "small differences pass",
        ),
        "inverted": (
            "\ndef is_equivariant(layer, x):\n    before = layer(x)\n"
            "    for i in range(x.shape[1]):\n        for j in range(i):\n"
            "            order = torch.arange(x.shape[1])\n"
            "            order[i], order[j] = j, i\n"
            "            if ((layer(x[:, order]) - before[:, order]).abs() > 1e-5).any():\n"
            "                return True\n    return False\n",
            "the opposite answer",
        ),
        "a tensor": (
            _equivariant(
                "return ((layer(x.flip(1)) - layer(x).flip(1)).abs() <= 1e-5).all(dim=(0, 2))"
            ),
            "expected a number, got a boolean tensor",
        ),
    },
    "04-sinusoidal": {
        "i for 2i": (_sinusoidal(theta="base ** (-pair / d_model)"), "i in the exponent"),
        "divided by the pairs": (
            _sinusoidal(theta="base ** (-2 * pair / (d_model // 2))"),
            "half of d_model",
        ),
        "each column": (
            _body(
                "def sinusoidal(positions, d_model, base=10000.0):",
                "j = torch.arange(d_model)\nangle = positions[:, None] * base ** (-j / d_model)\n"
                "return torch.where(j % 2 == 0, angle.sin(), angle.cos())",
            ),
            "a frequency of its own",
        ),
        "twice the column": (
            _body(
                "def sinusoidal(positions, d_model, base=10000.0):",
                "j = torch.arange(d_model)\n"
                "angle = positions[:, None] * base ** (-2 * j / d_model)\n"
                "return torch.where(j % 2 == 0, angle.sin(), angle.cos())",
            ),
            "the number of the column",
        ),
        "cosine first": (
            _sinusoidal(woven="torch.stack([angle.cos(), angle.sin()], dim=-1).flatten(1)"),
            "cosines in the even columns",
        ),
        "halves": (
            _sinusoidal(woven="torch.cat([angle.sin(), angle.cos()], dim=-1)"),
            "all sines first",
        ),
        "sines only": (
            _sinusoidal(woven="angle.sin().repeat_interleave(2, dim=-1)"),
            "the odd one is the cosine",
        ),
        "faster": (_sinusoidal(theta="base ** (2 * pair / d_model)"), "later pairs"),
        "degrees": (
            _sinusoidal(angle="torch.deg2rad(positions[:, None] * theta)"),
            "for degrees",
        ),
        "turns": (
            _sinusoidal(angle="2 * math.pi * positions[:, None] * theta"),
            "a factor of 2 pi",
        ),
        "from one": (_sinusoidal(angle="(positions[:, None] + 1) * theta"), "one too far"),
        "rows": (
            _sinusoidal(angle="torch.arange(len(positions))[:, None] * theta"),
            "counts the rows from 0",
        ),
        "base ignored": (
            _sinusoidal(theta="10000.0 ** (-2 * pair / d_model)"),
            "always takes the base 10000",
        ),
        "spaced to the end": (
            _sinusoidal(theta="base ** (-pair / max(d_model // 2 - 1, 1))"),
            "exactly one over the base",
        ),
        "transposed": (
            _sinusoidal(woven="torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).T"),
            "expected shape",
        ),
        "positions changed": (
            _sinusoidal(angle="positions.mul_(1).add_(1)[:, None].sub(1) * theta"),
            "changed its argument",
        ),
        "the library": (
            "\nimport plainformer.positions\n\n"
            "def sinusoidal(positions, d_model, base=10000.0):\n"
            "    return plainformer.positions.sinusoidal_table(positions, d_model, base=base)\n",
            "do without",
        ),
    },
    "04-shift-rotation": {
        "backwards": (_shift("c, -s", "s, c"), "back by k"),
        "no minus": (_shift("c, s", "s, c"), "has no minus"),
        "sine for cosine": (_shift("s, c", "-c, s"), "for k = 0 nothing moves"),
        "mirror": (_shift("c, s", "s, -c"), "a mirror"),
        "halves": (
            _body(
                "def shift_matrix(k, freqs):",
                "c, s = torch.cos(k * freqs).diag(), torch.sin(k * freqs).diag()\n"
                "return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)])",
            ),
            "here neighbours are one",
        ),
        "first frequency": (_shift(angle="k * freqs[0]"), "by the first frequency"),
        "one step": (_shift(angle="theta"), "for one step"),
        "frequencies ignored": (
            _shift(angle="k * torch.ones_like(theta)"),
            "by k radians",
        ),
        "divided": (_shift(angle="k / theta"), "divides k by the frequency"),
        "the vector for the matrix": (
            _body(
                "def shift_matrix(k, freqs):",
                "return torch.stack([torch.sin(k * freqs), torch.cos(k * freqs)], -1).flatten()",
            ),
            "number of axes differs",
        ),
        "degrees": (
            _shift(angle="torch.deg2rad(k * theta)"),
            None,
            "far too small an angle; the message shows the numbers",
        ),
        "a block only": (
            _body(
                "def shift_matrix(k, freqs):",
                "c, s = torch.cos(k * freqs[0]), torch.sin(k * freqs[0])\n"
                "return torch.stack([torch.stack([c, s]), torch.stack([-s, c])])",
            ),
            "expected shape",
        ),
    },
    "04-sum-or-concat": {
        "w cut at the place": (
            _sum_and_concat(
                "d = places.shape[1]\n"
                "low, high = w[d:], w[:d]\n"
                "if words.shape[1] != len(low):\n"
                "    raise ValueError('w does not fit')\n"
                "return words @ low, places @ high"
            ),
            "the other way round",
        ),
        "place at the front": (
            _sum_and_concat(
                "d_word, d_place = words.shape[1], places.shape[1]\n"
                "return words @ w[:d_word], places @ w[:d_place]"
            ),
            "the first rows of w",
        ),
        "mean moved": (
            _sum_and_concat(
                "d_word = words.shape[1]\nlower = places @ w[d_word:]\nmean = lower.mean(dim=0)\n"
                "return words @ w[:d_word] + mean, lower - mean"
            ),
            "a word of zeros",
        ),
        "tables swapped": (
            _sum_and_concat(
                "d_word = words.shape[1]\nreturn places @ w[d_word:], words @ w[:d_word]"
            ),
            "words come first",
        ),
        "one table": (
            _sum_and_concat(
                "d_word = words.shape[1]\n"
                "return words @ w[:d_word] + (places @ w[d_word:]).sum(dim=0)"
            ),
            "number of axes differs",
        ),
        "side by side": (
            _sum_and_concat(second="return torch.cat([w, w], dim=1)"),
            "not more columns",
        ),
        "half": (_sum_and_concat(second="return torch.cat([w, w]) / 2"), "half of each"),
        "zeros": (
            _sum_and_concat(second="return F.pad(w, (0, 0, 0, len(w)))"),
            "zeros where the place comes in",
        ),
        "rows twice": (
            _sum_and_concat(second="return w.repeat_interleave(2, dim=0)"),
            "repeats each row where it stands",
        ),
    },
    "04-relative-bias-buckets": {
        "reshaped in place of permuted": (
            """
def bucket_bias(table, t, s, max_distance):
    half = table.shape[0] // 2
    r = torch.arange(s - t, s)[:, None] - torch.arange(s)[None, :]
    ratio = r.clamp(min=1).double() / half
    far = half + (half * ratio.log() / math.log(max_distance / half)).floor().long()
    bucket = torch.where(r < half, r.clamp(min=0), far.clamp(max=table.shape[0] - 1))
    return table[bucket].reshape(table.shape[1], t, s)
""",
            "is a permute",
        ),
        "an encoder's": (
            _body(
                "def bucket_bias(table, t, s, max_distance):",
                "n, half = len(table) // 2, len(table) // 4\n"
                "back = torch.arange(s - t, s)[:, None] - torch.arange(s)\n"
                "r = back.abs()\n"
                "log = (r.clamp(min=half) / half).log() / math.log(max_distance / half)\n"
                "wide = (half + half * log).long().clamp(max=n - 1)\n"
                "bucket = torch.where(r < half, r, wide) + (back < 0) * n\n"
                "return table[bucket].permute(2, 0, 1)",
            ),
            "an encoder's buckets",
        ),
        "ahead": (_buckets(r="(-r).clamp(min=0)"), "how far ahead"),
        "both sides": (_buckets(r="r.abs()"), "they get bucket 0"),
        "from zero": (_buckets(start="0"), "start at position 0"),
        "rounded up": (_buckets(wide="(half + half * log - 1e-9).ceil()"), "rounds the wide"),
        "nearest": (_buckets(wide="(half + half * log).round()"), "to the nearest"),
        "exact all the way": (_buckets(wide="r"), "a bucket of its own until"),
        "log of r": (
            _buckets(log="r.clamp(min=half).log() / math.log(max_distance)"),
            "divided by half first",
        ),
        "last unused": (_buckets(top="n - 2"), "never uses the last bucket"),
        "heads last": (_buckets(axes=""), "the heads come first"),
        "transposed": (
            _buckets(axes=".permute(2, 1, 0)"),
            None,
            "another shape where t and s differ; the message shows it",
        ),
        "no clamp": (
            _buckets(top="10**9"),
            "The call stopped with",
        ),
        "the buckets": (
            _buckets().replace("return table[bucket]", "return bucket[..., None].float()"),
            None,
            "the buckets' numbers in place of the table's; the message shows the case",
        ),
        "no gradient": (
            _buckets().replace("return table[bucket]", "return table.detach()[bucket]"),
            "no gradient comes back",
        ),
        "the library": (
            "\nfrom plainformer import positions\n\n"
            "def bucket_bias(table, t, s, max_distance):\n"
            "    r = positions.relative_positions(t, s)\n"
            "    bucket = positions.causal_buckets(r, len(table), max_distance)\n"
            "    return table[bucket].permute(2, 0, 1)\n",
            "do without",
        ),
    },
    "04-alibi": {
        "added": (_alibi(out="slopes[:, None, None] * distance"), "what should be subtracted"),
        "signed": (
            _alibi(distance="torch.arange(s - t, s)[:, None] - torch.arange(s)"),
            "raises the scores of keys ahead",
        ),
        "free ahead": (
            _alibi(distance="(torch.arange(s - t, s)[:, None] - torch.arange(s)).clamp(min=0)"),
            "gives keys ahead a 0",
        ),
        "heads from zero": (
            _alibi(slopes="2.0 ** (-8 * torch.arange(n_heads) / n_heads)"),
            "counts the heads from 0",
        ),
        "halved": (
            _alibi(slopes="0.5 ** torch.arange(1, n_heads + 1)"),
            "halves the slope with each head",
        ),
        "reversed": (
            _alibi(slopes="2.0 ** (-8 * torch.arange(n_heads, 0, -1) / n_heads)"),
            "the first has it",
        ),
        "top left": (
            _alibi(distance="(torch.arange(t)[:, None] - torch.arange(s)).abs()"),
            "start at position 0",
        ),
        "one slope": (
            _alibi(slopes="torch.full((n_heads,), 2.0 ** (-8 / n_heads))"),
            "the slope of the first",
        ),
        "powers of e": (
            _alibi(slopes="torch.exp(-8 * torch.arange(1, n_heads + 1) / n_heads)"),
            "powers of e",
        ),
        "no heads": (_alibi(out="-slopes[0] * distance"), "number of axes differs"),
        "heads last": (
            _alibi(out="-slopes * distance[:, :, None]"),
            "expected shape",
        ),
    },
    "04-rope": {
        "clockwise": (_rope(turned="a * c + b * s, b * c - a * s"), "turns clockwise"),
        "half-split": (
            _rope(pairs="x.chunk(2, dim=-1)", out="torch.cat(turned, dim=-1)"),
            "number i + d_head / 2",
        ),
        "put as halves": (_rope(out="torch.cat(turned, dim=-1)"), "put down in another order"),
        "read as halves": (_rope(pairs="x.chunk(2, dim=-1)"), "half a head apart and puts"),
        "two layouts": (
            _body(
                "def rope(x, positions, freqs):",
                "angle = (positions[:, None] * freqs).repeat_interleave(2, dim=-1)\n"
                "a, b = x.chunk(2, dim=-1)\n"
                "return x * angle.cos() + torch.cat([-b, a], dim=-1) * angle.sin()",
            ),
            "two layouts are mixed",
        ),
        "sine and cosine": (
            _rope(turned="a * s - b * c, a * c + b * s"),
            "at position 0 nothing turns",
        ),
        "no minus": (_rope(turned="a * c + b * s, a * s + b * c"), "a turn has one"),
        "overwritten": (
            _body(
                "def rope(x, positions, freqs):",
                "angle = positions[:, None] * freqs\nx = x.clone()\n"
                "x[..., 0::2] = x[..., 0::2] * angle.cos() - x[..., 1::2] * angle.sin()\n"
                "x[..., 1::2] = x[..., 0::2] * angle.sin() + x[..., 1::2] * angle.cos()\n"
                "return x",
            ),
            "both need the old pair",
        ),
        "one angle": (
            _rope(angle="positions[:, None] * freqs[:1]"),
            "the frequency of the first",
        ),
        "rows": (
            _rope(angle="torch.arange(x.shape[-2])[:, None] * freqs"),
            "counts the rows from 0",
        ),
        "no frequencies": (
            _rope(angle="positions[:, None].expand(-1, len(freqs)).float()"),
            "the position itself",
        ),
        "added": (
            _body(
                "def rope(x, positions, freqs):",
                "angle = positions[:, None] * freqs\n"
                "return x + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)",
            ),
            "adds sines and cosines",
        ),
        "from one": (_rope(angle="(positions[:, None] + 1) * freqs"), "one too far"),
        "in place": (
            _body(
                "def rope(x, positions, freqs):",
                "angle = positions[:, None] * freqs\na, b = x[..., 0::2].clone(), x[..., 1::2]\n"
                "new = a * angle.sin() + b * angle.cos()\n"
                "x[..., 0::2] = a * angle.cos() - b * angle.sin()\nx[..., 1::2] = new\nreturn x",
            ),
            "changed its argument",
        ),
        "no gradient": (
            _rope().replace("a, b = x", "x = x.detach()\n    a, b = x"),
            "no gradient comes back",
        ),
        "first axis for positions": (
            _rope(angle="positions * freqs[:, None]"),
            None,
            "stops or gives another shape, by size; the message shows the case",
        ),
    },
    "04-rope-layouts": {
        "the draft": (
            _rows(
                "d_head = len(weight) // n_heads\n"
                "rows = weight.reshape(n_heads, 2, d_head // 2, *weight.shape[1:])\n"
                "return rows.transpose(1, 2).reshape(weight.shape)"
            ),
            "the way back",
        ),
        "all rows as one head": (
            _rows("return torch.cat([weight[0::2], weight[1::2]])"),
            "each head is reordered on its own",
        ),
        "one head, and back": (
            _rows(
                "half = len(weight) // 2\n"
                "return torch.stack([weight[:half], weight[half:]], 1).flatten(0, 1)"
            ),
            "and it is the way back",
        ),
        "unchanged": (_rows("return weight.clone()"), "as they were"),
        "odd first": (
            _rows(
                "out = []\nfor head in weight.chunk(n_heads):\n"
                "    out += [head[1::2], head[0::2]]\nreturn torch.cat(out)"
            ),
            "the even ones come first",
        ),
        "dealt out": (
            _rows("return torch.cat([weight[i::n_heads] for i in range(n_heads)])"),
            "in turn",
        ),
        "columns": (
            _rows("return torch.cat([weight[..., 0::2], weight[..., 1::2]], dim=-1)"),
            None,
            "reorders the columns; the message shows the first row that is wrong",
        ),
        "no biases": (
            _rows("return rearrange(weight, '(h p two) d -> (h two p) d', h=n_heads, two=2)"),
            "The call stopped with",
        ),
        "another shape": (
            _rows("return weight.reshape(n_heads, -1, 2, *weight.shape[1:]).transpose(1, 2)"),
            "number of axes differs",
        ),
    },
    "04-rope-offset": {
        "all turned again for the scores": (
            """
def go_on(q, k, v, kept_k, kept_v, freqs):
    n, t = kept_k.shape[2], q.shape[2]
    at = torch.arange(n, n + t)
    q, k = rotate_interleaved(q, at, freqs), rotate_interleaved(k, at, freqs)
    keys, values = torch.cat([kept_k, k], 2), torch.cat([kept_v, v], 2)
    turned = rotate_interleaved(keys, torch.arange(n + t), freqs)
    return dot_product_attention(q, turned, values, causal_mask(t, n + t)), keys, values
""",
            "once, when it comes",
        ),
        "from zero": (_go_on(positions="torch.arange(t)"), "from 0 again"),
        "one late": (_go_on(positions="torch.arange(n + 1, n + t + 1)"), "one position too far"),
        "one early": (_go_on(positions="torch.arange(n, n + t) - 1"), "one position too early"),
        "kept turned again": (
            _go_on(more="kept_k = rotate_interleaved(kept_k, torch.arange(n), freqs)"),
            "turns the kept keys again",
        ),
        "values turned": (
            _go_on(more="v = rotate_interleaved(v, positions, freqs)"),
            "turns the values",
        ),
        "query as it came": (_go_on(more="asks = q"), "does not turn the new queries"),
        "key as it came": (_go_on(more="turned = k"), "does not turn the new keys"),
        "kept unturned": (
            _go_on(more="seen = torch.cat([kept_k, turned], dim=-2)", new_k="k", looked_at="seen"),
            "kept unturned",
        ),
        "top left": (_go_on(mask="torch.ones(t, n + t).tril().bool()"), "at the first position"),
        "no mask": (_go_on(mask="None"), "the new ones after it"),
        "new in front": (
            _body(
                "def go_on(q, k, v, kept_k, kept_v, freqs):",
                "n, t = kept_k.shape[-2], q.shape[-2]\nwhere = torch.arange(n, n + t)\n"
                "q, k = (rotate_interleaved(x, where, freqs) for x in (q, k))\n"
                "k, v = torch.cat([k, kept_k], dim=-2), torch.cat([v, kept_v], dim=-2)\n"
                "return dot_product_attention(q, k, v, causal_mask(t, n + t)), k, v",
            ),
            "in front of the kept ones",
        ),
        "new only": (
            _body(
                "def go_on(q, k, v, kept_k, kept_v, freqs):",
                "n, t = kept_k.shape[-2], q.shape[-2]\nwhere = torch.arange(n, n + t)\n"
                "q, k = (rotate_interleaved(x, where, freqs) for x in (q, k))\n"
                "out = dot_product_attention(q, k, v, causal_mask(t))\n"
                "return out, torch.cat([kept_k, k], -2), torch.cat([kept_v, v], -2)",
            ),
            "looks at the new tokens only",
        ),
        "one position for all": (
            _go_on(positions="torch.full((t,), n)"),
            None,
            "right for one new token at a time; the message shows where it is not",
        ),
        "caches forgotten": (
            _go_on().replace(
                "causal_mask(t, n + t)), k, v", "causal_mask(t, n + t)), kept_k, kept_v"
            ),
            "expected shape",
        ),
    },
    "04-rope-scaling": {
        "faster": (_scaling(even="return freqs * factor"), "makes the pairs faster"),
        "twice": (_scaling(even="return freqs / factor**2"), "divides by the factor twice"),
        "ntk: all alike": (_scaling(ntk="return freqs / factor"), "by the whole factor"),
        "ntk: by pairs": (
            _scaling(ntk="n = len(freqs)\nreturn freqs / factor ** (torch.arange(n) / n)"),
            "divide i by pairs - 1",
        ),
        "ntk: from one": (
            _scaling(ntk="n = len(freqs)\nreturn freqs / factor ** (torch.arange(1, n + 1) / n)"),
            "pairs count from 0",
        ),
        "ntk: the wrong end": (
            _scaling(
                ntk="n = len(freqs)\nreturn freqs / factor ** (1 - torch.arange(n) / (n - 1))"
            ),
            "it is the other way round",
        ),
        "ntk: faster": (
            _scaling(ntk="n = len(freqs)\nreturn freqs * factor ** (torch.arange(n) / (n - 1))"),
            "makes the pairs faster",
        ),
        "ntk: evenly": (
            _scaling(ntk="n = len(freqs)\nreturn freqs / torch.linspace(1, factor, n)"),
            "its power does",
        ),
        "parts: the wrong end": (
            _scaling(parts=PARTS.replace("clamp(0, 1)", "clamp(0, 1)\ngamma = 1 - gamma")),
            "it is the other way round",
        ),
        "parts: radians": (
            _scaling(parts=PARTS.replace(" / (2 * math.pi)", "")),
            "a full turn is 2 pi",
        ),
        "parts: not clamped": (
            _scaling(parts=PARTS.replace(".clamp(0, 1)", "")),
            "leave the range",
        ),
        "parts: a step": (
            _scaling(
                parts="turns = length * freqs / (2 * math.pi)\n"
                "return torch.where(turns > slow, freqs, freqs / factor)"
            ),
            "has no mixture",
        ),
        "parts: divisors": (
            _scaling(
                parts="gamma = ((length * freqs / (2 * math.pi) - slow) / (fast - slow))\n"
                "gamma = gamma.clamp(0, 1)\nreturn freqs / (gamma + (1 - gamma) * factor)"
            ),
            "mix the frequencies",
        ),
        "parts: all slowed": (_scaling(parts="return freqs / factor"), "by the whole factor"),
        "parts: wavelengths": (
            _scaling(
                parts="wave = 2 * math.pi / freqs\n"
                "gamma = ((wave / length - slow) / (fast - slow)).clamp(0, 1)\n"
                "return gamma * freqs + (1 - gamma) * freqs / factor"
            ),
            None,
            "turns upside down; the message shows the numbers",
        ),
    },
}
