"""Known answers to chapter 02: right ones written in many ways, wrong ones that look reasonable.

A right answer must get every point. A wrong one is a source and the words that its author must
see; or a source, None, and the reason why no message can tell more than where the numbers differ.
"""

RIGHT = {
    "02-attention-scores": {
        "loops": '''
def attention_scores(q, k):
    """Batch by batch, query by query, key by key."""
    t, s, d_head = q.shape[-2], k.shape[-2], q.shape[-1]
    flat_q, flat_k = q.reshape(-1, t, d_head), k.reshape(-1, s, d_head)
    scores = torch.zeros(len(flat_q), t, s)
    for b in range(len(flat_q)):
        for i in range(t):
            for j in range(s):
                total = 0.0
                for r in range(d_head):
                    total += flat_q[b, i, r].item() * flat_k[b, j, r].item()
                scores[b, i, j] = total / math.sqrt(d_head)
    return scores.reshape(*q.shape[:-1], s)
''',
        "einsum, keys scaled": """
def attention_scores(q, k):
    return torch.einsum("...td,...sd->...ts", q, k * q.size(-1) ** -0.5)
""",
        "einops": """
def attention_scores(q, k):
    d_head = q.shape[-1]
    return einsum(q, k, "... t d_head, ... s d_head -> ... t s") / math.sqrt(d_head)
""",
        "in place on its own tensor": """
def attention_scores(q, k):
    scores = torch.matmul(q, k.transpose(-2, -1))
    scores.div_(torch.sqrt(torch.tensor(float(k.shape[-1]))))
    return scores
""",
        "both halves scaled": """
def attention_scores(q, k):
    quarter = q.shape[-1] ** 0.25
    return (q / quarter) @ (k / quarter).transpose(-1, -2)
""",
        "broadcasting": """
def attention_scores(q, k):
    products = q.unsqueeze(-2) * k.unsqueeze(-3)
    return products.sum(dim=-1) / q.shape[-1] ** 0.5
""",
    },
    "02-project-qkv": {
        "einsum": """
def project_qkv(x, w_q, w_k, w_v, memory=None):
    if memory is None:
        memory = x
    q = torch.einsum("...i,ij->...j", x, w_q)
    k = torch.einsum("...i,ij->...j", memory, w_k)
    v = torch.einsum("...i,ij->...j", memory, w_v)
    return q, k, v
""",
        "F.linear": """
def project_qkv(x, w_q, w_k, w_v, memory=None):
    source = memory if memory is not None else x
    return F.linear(x, w_q.T), F.linear(source, w_k.T), F.linear(source, w_v.T)
""",
        "one product for keys and values": """
def project_qkv(x, w_q, w_k, w_v, memory=None):
    if memory is None:
        both = x @ torch.cat([w_q, w_k, w_v], dim=1)
        return both.split([w_q.shape[1], w_k.shape[1], w_v.shape[1]], dim=-1)
    k, v = (memory @ torch.cat([w_k, w_v], dim=1)).split([w_k.shape[1], w_v.shape[1]], dim=-1)
    return x @ w_q, k, v
""",
        "broadcasting, as a list": """
def project_qkv(x, w_q, w_k, w_v, memory=None):
    sources = [x] + [x if memory is None else memory] * 2
    return [(a[..., :, None] * w).sum(dim=-2) for a, w in zip(sources, (w_q, w_k, w_v))]
""",
    },
    "02-softmax": {
        "loops": """
def softmax(scores):
    s = scores.shape[-1]
    rows = []
    for row in scores.reshape(-1, s).tolist():
        best = max(row)
        powers = [math.exp(score - best) for score in row]
        rows.append([power / sum(powers) for power in powers])
    return torch.tensor(rows).reshape(scores.shape)
""",
        "logsumexp": """
def softmax(scores):
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
""",
        "einsum": """
def softmax(scores):
    powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return torch.einsum("...s,...->...s", powers, 1 / powers.sum(dim=-1))
""",
        "in place on a copy": """
def softmax(scores):
    weights = scores.clone()
    weights -= weights.amax(-1, keepdim=True)
    weights.exp_()
    weights /= weights.sum(-1, keepdim=True)
    return weights
""",
        "pairwise differences": """
def softmax(scores):
    # 1 / sum_j exp(z_j - z_i); exp may overflow to infinity here, and 1 / infinity is 0
    return 1 / (scores[..., None, :] - scores[..., :, None]).exp().sum(dim=-1)
""",
        "a local name for the result": """
def softmax(scores):
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    softmax = powers / powers.sum(dim=-1, keepdim=True)
    return softmax
""",
    },
    "02-softmax-jacobian": {
        "loops": """
def softmax_jacobian(scores):
    weights = scores.softmax(dim=-1)
    s = scores.shape[-1]
    slopes = torch.zeros(*scores.shape, s, dtype=scores.dtype)
    for i in range(s):
        for j in range(s):
            own = 1.0 if i == j else 0.0
            slopes[..., i, j] = weights[..., i] * (own - weights[..., j])
    return slopes
""",
        "identity minus": """
def softmax_jacobian(scores):
    w = torch.softmax(scores, dim=-1)
    return w.unsqueeze(-1) * (torch.eye(w.shape[-1], dtype=w.dtype) - w.unsqueeze(-2))
""",
        "einsum": """
def softmax_jacobian(scores):
    w = torch.softmax(scores, dim=-1)
    jacobian = -torch.einsum("...i,...j->...ij", w, w)
    jacobian.diagonal(dim1=-2, dim2=-1).add_(w)
    return jacobian
""",
        "mean of outer products": """
def softmax_jacobian(scores):
    # The covariance of a one-hot vector that is drawn with these weights.
    w = scores.softmax(dim=-1)
    off = torch.eye(w.shape[-1]).to(w) - w[..., None, :]  # (..., outcome, i)
    return torch.einsum("...o,...oi,...oj->...ij", w, off, off)
""",
    },
    "02-scaled-dot-product-attention": {
        "loops": """
def attention(q, k, v):
    t, s, d_head, d_value = q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]
    Q, K, V = q.reshape(-1, t, d_head), k.reshape(-1, s, d_head), v.reshape(-1, s, d_value)
    rows = []
    for b in range(len(Q)):
        for i in range(t):
            scores = [Q[b, i] @ K[b, j] / d_head**0.5 for j in range(s)]
            powers = [torch.exp(score - max(scores)) for score in scores]
            rows.append(sum(powers[j] / sum(powers) * V[b, j] for j in range(s)))
    return torch.stack(rows).reshape(*q.shape[:-1], d_value)
""",
        "einsum": """
def attention(q, k, v):
    scores = torch.einsum("...td,...sd->...ts", q, k) / math.sqrt(k.shape[-1])
    return torch.einsum("...ts,...sv->...tv", torch.softmax(scores, -1), v)
""",
        "einops": """
def attention(q, k, v):
    q = q * q.shape[-1] ** -0.5
    weights = einsum(q, k, "... t d, ... s d -> ... t s").softmax(dim=-1)
    return einsum(weights, v, "... t s, ... s d_value -> ... t d_value")
""",
        "normalised at the end": """
def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    powers = (scores - scores.max(dim=-1, keepdim=True)[0]).exp()
    return (powers @ v) / powers.sum(dim=-1, keepdim=True)
""",
        "in place on its own tensor": """
def attention(q, k, v):
    scores = torch.matmul(q, k.mT)
    scores *= 1 / math.sqrt(q.shape[-1])
    scores -= scores.amax(dim=-1, keepdim=True).detach()
    powers = scores.exp_()
    return torch.matmul(powers / powers.sum(dim=-1, keepdim=True), v)
""",
        "keys first": """
def attention(q, k, v):
    by_key = (k @ q.mT / k.shape[-1] ** 0.5).softmax(dim=-2)  # (s, t): a query is a column here
    return by_key.mT @ v
""",
    },
    "02-hand-attention": {
        "numbers": """
def hand_attention():
    return {
        "q": [[1.0, 0.0, 1.0, -2.0], [2.0, 4.0, 2.0, 0.0]],
        "k": [[1.0, -1.0, 2.0, 1.0], [0.0, 0.0, 2.0, 2.0]],
        "v": [[40.0, -40.0, 50.0], [60.0, 0.0, 40.0]],
        "scores": [[0.5, -1.0], [1.0, 2.0]],
        "weights": [[0.8176, 0.1824], [0.2689, 0.7311]],
        "output": [[43.6485, -32.7030, 48.1757], [54.6212, -10.7577, 42.6894]],
    }
""",
        "tensors": """
def hand_attention():
    x = torch.tensor([[1.0, -1.0], [2.0, 0.0]])
    q = x @ torch.tensor([[1.0, 2.0, 1.0, 0.0], [0.0, 2.0, 0.0, 2.0]])
    k = x @ torch.tensor([[0.0, 0.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 0.0]])
    v = x @ torch.tensor([[30.0, 0.0, 20.0], [-10.0, 40.0, -30.0]])
    scores = q @ k.T / 2
    weights = scores.softmax(dim=-1)
    return dict(q=q, k=k, v=v, scores=scores, weights=weights, output=weights @ v)
""",
        "six digits on the way": """
def hand_attention():
    a, b = 0.817574, 0.268941
    v = [[40, -40, 50], [60, 0, 40]]
    mix = lambda w: [round(w * one + (1 - w) * two, 4) for one, two in zip(*v)]
    return {
        "q": ((1, 0, 1, -2), (2, 4, 2, 0)),
        "k": ((1, -1, 2, 1), (0, 0, 2, 2)),
        "v": v,
        "scores": [[1 / 2, -2 / 2], [2 / 2, 4 / 2]],
        "weights": [[a, 1 - a], [b, 1 - b]],
        "output": [mix(a), mix(b)],
    }
""",
    },
    "02-dot-product-variance": {
        "second moments": """
def dot_product_variance(d_head, q_mean, q_std, k_mean, k_std):
    mean_of_square = (q_mean**2 + q_std**2) * (k_mean**2 + k_std**2)
    return d_head * (mean_of_square - (q_mean * k_mean) ** 2)
""",
        "a sum, term by term": """
def dot_product_variance(d_head, q_mean, q_std, k_mean, k_std):
    total = 0
    for _ in range(d_head):
        total += q_std * q_std * k_std * k_std
        total += q_std * q_std * k_mean * k_mean + k_std * k_std * q_mean * q_mean
    return total
""",
        "a tensor": """
def dot_product_variance(d_head, q_mean, q_std, k_mean, k_std):
    q_mean, q_std, k_mean, k_std = torch.tensor([q_mean, q_std, k_mean, k_std])
    return d_head * ((q_std * k_std) ** 2 + (q_std * k_mean) ** 2 + (q_mean * k_std) ** 2)
""",
    },
    "02-people-say-attention": {
        "one line": """
def people_say_attention():
    true = "negative_scores shift_row output_rows some_do_without flatter"
    false = "score_is_share columns_sum value_width best_key_changes guarantee proof"
    depends = "same_sequence variance_is_d one_hot"
    words = {"true": true, "false": false, "depends": depends}
    return {item: word for word, items in words.items() for item in items.split()}
""",
        "words with blanks": """
def people_say_attention():
    answers = dict.fromkeys(["negative_scores", "shift_row", "output_rows"], " true ")
    answers.update(some_do_without="true", flatter="true", proof="false")
    answers.update(score_is_share="false", columns_sum="false", value_width="false")
    answers.update(best_key_changes="false", guarantee="false")
    return {**answers, "same_sequence": "depends", "variance_is_d": "depends", "one_hot": "depends"}
""",
        "capital letters": """
def people_say_attention():
    answers = dict.fromkeys(["negative_scores", "shift_row", "output_rows"], "True")
    answers |= {"some_do_without": "TRUE", "flatter": "true"}
    answers |= dict.fromkeys(["score_is_share", "columns_sum", "value_width"], "False")
    answers |= {"best_key_changes": "false", "guarantee": "false", "proof": "False"}
    return answers | dict.fromkeys(["same_sequence", "variance_is_d", "one_hot"], "Depends")
""",
    },
}

SCORES = """
def attention_scores(q, k):
    {body}
"""
SOFTMAX = """
def softmax(scores):
    {body}
"""
JACOBIAN = """
def softmax_jacobian(scores):
    w = scores.softmax(dim=-1)
    {body}
"""
ATTENTION = """
def attention(q, k, v):
    {body}
"""
PROJECT = """
def project_qkv(x, w_q, w_k, w_v, memory=None):
    asked = x if memory is None else memory
    {body}
"""
VARIANCE = """
def dot_product_variance(d_head, q_mean, q_std, k_mean, k_std):
    {body}
"""
HAND = """
def hand_attention():
    x = torch.tensor([[1.0, -1.0], [2.0, 0.0]])
    q = x @ torch.tensor([[1.0, 2.0, 1.0, 0.0], [0.0, 2.0, 0.0, 2.0]])
    k = x @ torch.tensor([[0.0, 0.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 0.0]])
    v = x @ torch.tensor([[30.0, 0.0, 20.0], [-10.0, 40.0, -30.0]])
    {body}
    return dict(q=q, k=k, v=v, scores=scores, weights=weights, output=output)
"""
HAND_PARTIAL = """
def hand_attention():
    q, k = [[1, 0, 1, -2], [2, 4, 2, 0]], [[1, -1, 2, 1], [0, 0, 2, 2]]
    return {{"q": {q}, "k": {k}, "v": [[40, -40, 50], [60, 0, 40]]}}
"""
PEOPLE = """
def people_say_attention():
    items = "negative_scores score_is_share columns_sum shift_row value_width output_rows".split()
    items += "same_sequence variance_is_d one_hot best_key_changes guarantee".split()
    items += "some_do_without flatter proof".split()
    return {body}
"""
RIGHT_QUIZ = (
    "dict(zip(items, 'true false false true false true depends depends depends false false true"
    " true false'.split()))"
)


def _filled(template: str, body: str) -> str:
    return template.format(body=body.replace("\n", "\n    "))


def _hand(scores: str, weights: str, output: str = "weights @ v") -> str:
    return _filled(HAND, f"scores = {scores}\nweights = {weights}\noutput = {output}")


WRONG = {
    "02-attention-scores": {
        "unscaled": (_filled(SCORES, "return q @ k.mT"), "without dividing"),
        "divided by d_head": (
            _filled(SCORES, "return q @ k.mT / q.shape[-1]"),
            "by d_head, not by its square root",
        ),
        "divided by the root of s": (
            _filled(SCORES, "return q @ k.mT / k.shape[-2] ** 0.5"),
            "number of keys",
        ),
        "divided by the root of t": (
            _filled(SCORES, "return q @ k.mT / q.shape[-2] ** 0.5"),
            "number of queries",
        ),
        "divided by the root of the first axis": (
            _filled(SCORES, "return q @ k.mT / q.size(0) ** 0.5"),
            "the first axis",
        ),
        "one half without brackets": (
            _filled(SCORES, "return q @ k.mT / q.shape[-1] ** 1 / 2"),
            "then by 2",
        ),
        "one half in the wrong brackets": (
            _filled(SCORES, "return q @ k.mT / (q.shape[-1] ** 1 / 2)"),
            "by d_head / 2",
        ),
        "multiplied": (_filled(SCORES, "return q @ k.mT * q.shape[-1] ** 0.5"), "multiplied"),
        "transposed": (_filled(SCORES, "return k @ q.mT / q.shape[-1] ** 0.5"), "k times q"),
        "softmax too early": (
            _filled(SCORES, "return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)"),
            "equals the weights",
        ),
        "only for two axes": (
            _filled(SCORES, "return torch.mm(q, k.T) / q.shape[-1] ** 0.5"),
            "stopped with",
        ),
        "no transpose": (_filled(SCORES, "return q @ k / q.shape[-1] ** 0.5"), "stopped with"),
        "number by number": (
            _filled(SCORES, "return q[..., : k.shape[-2], :] * k / q.shape[-1] ** 0.5"),
            "stopped with",
        ),
        "scaled in place": (
            _filled(SCORES, "q /= q.shape[-1] ** 0.5\nreturn q @ k.mT"),
            "changed its argument",
        ),
        "transposed when square": (
            _filled(
                SCORES,
                "scores = q @ k.mT / q.shape[-1] ** 0.5\n"
                "return scores.mT if q.shape[-2] == k.shape[-2] else scores",
            ),
            "(case 3 of 3)",
        ),
        "cosine": (
            _filled(SCORES, "return F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT"),
            None,
            "a different idea of similarity, of which there are too many to list",
        ),
    },
    "02-project-qkv": {
        "memory ignored": (
            _filled(PROJECT, "return x @ w_q, x @ w_k, x @ w_v"),
            "although a memory was given",
        ),
        "memory of the same shape ignored": (
            _filled(
                PROJECT,
                "if memory is not None and memory.shape == x.shape:\n    asked = x\n"
                "return x @ w_q, asked @ w_k, asked @ w_v",
            ),
            "(case 4 of 4)",
        ),
        "query from the memory": (
            _filled(PROJECT, "return asked @ w_q, asked @ w_k, asked @ w_v"),
            "the asking positions are those of x",
        ),
        "k and v swapped": (
            _filled(PROJECT, "return x @ w_q, asked @ w_v, asked @ w_k"),
            "in each other's place",
        ),
        "weights transposed": (
            _filled(PROJECT, "return x @ w_q.T, asked @ w_k.T, asked @ w_v.T"),
            "transposed weights",
        ),
        "only the values from the memory": (
            _filled(PROJECT, "return x @ w_q, x @ w_k, asked @ w_v"),
            "expected shape",
        ),
        "one weight for both": (
            _filled(PROJECT, "return x @ w_q, asked @ w_k, asked @ w_k"),
            None,
            "any of nine such slips of the pen; the message says which item differs",
        ),
        "stacked": (
            _filled(PROJECT, "return torch.stack([x @ w_q, asked @ w_k, asked @ w_v])"),
            "3 items in a list or tuple",
        ),
        "memory always needed": (
            _filled(PROJECT, "return x @ w_q, memory @ w_k, memory @ w_v"),
            "stopped with",
        ),
        "memory appended": (
            _filled(
                PROJECT,
                "if memory is not None:\n    asked = torch.cat([x, memory], dim=-2)\n"
                "return x @ w_q, asked @ w_k, asked @ w_v",
            ),
            "expected shape",
        ),
    },
    "02-softmax": {
        "divided by the sum": (
            _filled(SOFTMAX, "return scores / scores.sum(dim=-1, keepdim=True)"),
            "exponentiates first",
        ),
        "down the columns": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores.max()).exp()\n"
                "return powers / powers.sum(dim=-2, keepdim=True)",
            ),
            "down the columns",
        ),
        "over the first axis": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores.amax(dim=0)).exp()\nreturn powers / powers.sum(dim=0)",
            ),
            "down the columns",
        ),
        "over everything": (
            _filled(
                SOFTMAX, "powers = (scores - scores.max()).exp()\nreturn powers / powers.sum()"
            ),
            "own sum",
        ),
        "no maximum": (
            _filled(SOFTMAX, "return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)"),
            "overflows",
        ),
        "one maximum for all": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores.max()).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True)",
            ),
            "its own largest score",
        ),
        "minimum subtracted": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores.amin(dim=-1, keepdim=True)).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True)",
            ),
            "NaN or infinite",
        ),
        "first score subtracted": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores[..., :1]).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True)",
            ),
            "NaN or infinite",
        ),
        "mean subtracted": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores.mean(dim=-1, keepdim=True)).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True)",
            ),
            "NaN or infinite",
        ),
        "clamped": (
            _filled(
                SOFTMAX,
                "powers = scores.clamp(-80, 80).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True)",
            ),
            None,
            "finite but wrong for large scores; the message shows them",
        ),
        "clamped after subtracting the mean": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores.mean(dim=-1, keepdim=True)).clamp(max=80).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True)",
            ),
            None,
            "finite but wrong far above the mean; the message shows it",
        ),
        "clamped on both sides": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores.mean(dim=-1, keepdim=True)).clamp(-50, 50).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True)",
            ),
            None,
            "finite but wrong far above the mean; the message shows it",
        ),
        "the third axis": (
            _filled(
                SOFTMAX,
                "dim = min(scores.dim() - 1, 2)\n"
                "powers = (scores - scores.amax(dim=dim, keepdim=True)).exp()\n"
                "return powers / powers.sum(dim=dim, keepdim=True)",
            ),
            None,
            "right up to three axes, so it is no one mistake in all cases; the message shows where",
        ),
        "not divided": (_filled(SOFTMAX, "return scores.exp()"), "before they are divided"),
        "logarithm": (
            _filled(SOFTMAX, "return scores - scores.logsumexp(dim=-1, keepdim=True)"),
            "logarithm of the softmax",
        ),
        "powers of two": (
            _filled(
                SOFTMAX,
                "powers = 2 ** (scores - scores.amax(dim=-1, keepdim=True))\n"
                "return powers / powers.sum(dim=-1, keepdim=True)",
            ),
            "powers of 2",
        ),
        "keepdim forgotten": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()\n"
                "return powers / powers.sum(dim=-1)",
            ),
            None,
            "broadcasts where the sizes happen to fit, and crashes where they do not",
        ),
        "nan made zero": (
            _filled(
                SOFTMAX,
                "return torch.nan_to_num(scores.exp() / scores.exp().sum(dim=-1, keepdim=True))",
            ),
            None,
            "finite but wrong for large scores; the message shows them",
        ),
        "into the argument": (
            _filled(
                SOFTMAX,
                "scores -= scores.amax(dim=-1, keepdim=True)\nscores.exp_()\n"
                "scores /= scores.sum(dim=-1, keepdim=True)\nreturn scores",
            ),
            "changed its argument",
        ),
        "a little added to the sum": (
            _filled(
                SOFTMAX,
                "powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()\n"
                "return powers / (powers.sum(dim=-1, keepdim=True) + 1e-4)",
            ),
            "sums of the rows",
        ),
        "PyTorch's own, behind a line": (
            _filled(SOFTMAX, "return torch._softmax(scores, -1, False)"),
            "do without",
        ),
        "PyTorch's own": (_filled(SOFTMAX, "return torch.softmax(scores, dim=-1)"), "do without"),
        "PyTorch's layer": (
            _filled(SOFTMAX, "return torch.nn.Softmax(dim=-1)(scores)"),
            "do without",
        ),
        "PyTorch's layer with the logarithm": (
            _filled(SOFTMAX, "return torch.nn.LogSoftmax(dim=-1)(scores).exp()"),
            "do without",
        ),
        "PyTorch's layer upside down": (
            _filled(SOFTMAX, "return torch.nn.Softmin(dim=-1)(-scores)"),
            "do without",
        ),
        "a distribution": (
            _filled(
                SOFTMAX,
                "from torch.distributions import Categorical as Draw\n"
                "return Draw(logits=scores).probs",
            ),
            "do without",
        ),
        "hidden in attention": (
            _filled(
                SOFTMAX,
                "eye = torch.eye(scores.shape[-1])\n"
                "return F.scaled_dot_product_attention(scores, eye, eye, scale=1.0)",
            ),
            "do without",
        ),
    },
    "02-softmax-jacobian": {
        "diagonal only": (
            _filled(JACOBIAN, "return torch.diag_embed(w * (1 - w))"),
            "lowers the other",
        ),
        "outer product forgotten": (
            _filled(JACOBIAN, "return torch.diag_embed(w)"),
            "outer product of the weights is missing",
        ),
        "diagonal forgotten": (
            _filled(JACOBIAN, "return -w[..., :, None] * w[..., None, :]"),
            "diag(weights) is missing",
        ),
        "sign flipped": (
            _filled(JACOBIAN, "return w[..., :, None] * w[..., None, :] - torch.diag_embed(w)"),
            "opposite sign",
        ),
        "from the scores": (
            _filled(
                JACOBIAN,
                "z = scores\nreturn torch.diag_embed(z) - z[..., :, None] * z[..., None, :]",
            ),
            "scores where the weights belong",
        ),
        "1 everywhere": (
            _filled(JACOBIAN, "return w[..., :, None] * (1 - w[..., None, :])"),
            "belongs to the diagonal only",
        ),
        "for one row only": (
            _filled(JACOBIAN, "return torch.diag(w) - torch.outer(w, w)"),
            "stopped with",
        ),
        "a vector": (_filled(JACOBIAN, "return w * (1 - w)"), "number of axes differs"),
        "plus": (
            _filled(JACOBIAN, "return torch.diag_embed(w) + w[..., :, None] * w[..., None, :]"),
            None,
            "a slip of the pen; the message shows entry and sign",
        ),
    },
    "02-scaled-dot-product-attention": {
        "unscaled": (
            _filled(ATTENTION, "return (q @ k.mT).softmax(dim=-1) @ v"),
            "without dividing",
        ),
        "divided by d_head": (
            _filled(ATTENTION, "return (q @ k.mT / q.shape[-1]).softmax(dim=-1) @ v"),
            "by d_head, not by its square root",
        ),
        "divided by the root of d_value": (
            _filled(ATTENTION, "return (q @ k.mT / v.shape[-1] ** 0.5).softmax(dim=-1) @ v"),
            "sqrt(d_value)",
        ),
        "divided by the root of s": (
            _filled(ATTENTION, "return (q @ k.mT / k.shape[-2] ** 0.5).softmax(dim=-1) @ v"),
            "sqrt(s)",
        ),
        "divided by the root of t": (
            _filled(ATTENTION, "return (q @ k.mT / q.shape[-2] ** 0.5).softmax(dim=-1) @ v"),
            "sqrt(t)",
        ),
        "multiplied": (
            _filled(ATTENTION, "return (q @ k.mT * q.shape[-1] ** 0.5).softmax(dim=-1) @ v"),
            "multiplied by sqrt(d_head)",
        ),
        "over the queries": (
            _filled(ATTENTION, "return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-2) @ v"),
            "over the queries",
        ),
        "scaled after the softmax": (
            _filled(ATTENTION, "return (q @ k.mT).softmax(dim=-1) / q.shape[-1] ** 0.5 @ v"),
            "divides after the softmax",
        ),
        "divided by the sum": (
            _filled(
                ATTENTION,
                "scores = q @ k.mT / q.shape[-1] ** 0.5\n"
                "return scores / scores.sum(dim=-1, keepdim=True) @ v",
            ),
            "exponentiates first",
        ),
        "weights returned": (
            _filled(ATTENTION, "return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)"),
            "average the values",
        ),
        "unstable": (
            _filled(
                ATTENTION,
                "powers = (q @ k.mT / q.shape[-1] ** 0.5).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True) @ v",
            ),
            "overflows",
        ),
        "divided by the root of the first axis": (
            _filled(ATTENTION, "return (q @ k.mT / q.size(0) ** 0.5).softmax(dim=-1) @ v"),
            "the first axis",
        ),
        "one half without brackets": (
            _filled(ATTENTION, "return (q @ k.mT / q.shape[-1] ** 1 / 2).softmax(dim=-1) @ v"),
            "then by 2",
        ),
        "one half in the wrong brackets": (
            _filled(ATTENTION, "return (q @ k.mT / (q.shape[-1] ** 1 / 2)).softmax(dim=-1) @ v"),
            "by d_head / 2",
        ),
        "one maximum for all": (
            _filled(
                ATTENTION,
                "scores = q @ k.mT / q.shape[-1] ** 0.5\npowers = (scores - scores.max()).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True) @ v",
            ),
            "its own largest score",
        ),
        "one maximum for each matrix": (
            _filled(
                ATTENTION,
                "scores = q @ k.mT / q.shape[-1] ** 0.5\n"
                "powers = (scores - scores.amax(dim=(-2, -1), keepdim=True)).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True) @ v",
            ),
            "its own largest score",
        ),
        "clamped after subtracting the mean": (
            _filled(
                ATTENTION,
                "scores = q @ k.mT / q.shape[-1] ** 0.5\n"
                "powers = (scores - scores.mean(dim=-1, keepdim=True)).clamp(max=80).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True) @ v",
            ),
            None,
            "finite but wrong far above the mean; the message shows it",
        ),
        "a little added to the sum": (
            _filled(
                ATTENTION,
                "scores = q @ k.mT / q.shape[-1] ** 0.5\n"
                "powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()\n"
                "return powers / (powers.sum(dim=-1, keepdim=True) + 1e-4) @ v",
            ),
            "output when all values are 1",
        ),
        "width one squeezed away": (
            _filled(
                ATTENTION,
                "return ((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v).squeeze(-1)",
            ),
            "number of axes differs",
        ),
        "never divided by less than two": (
            _filled(
                ATTENTION,
                "root = max(q.shape[-1], 2) ** 0.5\nreturn (q @ k.mT / root).softmax(dim=-1) @ v",
            ),
            "(case 4 of 5)",
        ),
        "squeezed": (
            _filled(
                ATTENTION,
                "out = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v\n"
                "return out.squeeze(0) if out.dim() == 4 else out",
            ),
            "number of axes differs",
        ),
        "detached": (
            _filled(
                ATTENTION,
                "return ((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v).detach()",
            ),
            "no gradient comes back",
        ),
        "only the values get a gradient": (
            _filled(
                ATTENTION,
                "return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1).detach() @ v",
            ),
            None,
            "a way cut for two of three; the message shows which",
        ),
        "values as wide as queries": (
            _filled(
                ATTENTION,
                "out = torch.zeros_like(q)\n"
                "out += (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v\nreturn out",
            ),
            "stopped with",
        ),
        "transposed": (
            _filled(ATTENTION, "return (k @ q.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v"),
            "stopped with",
        ),
        "output transposed": (
            _filled(ATTENTION, "return ((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v).mT"),
            "expected shape",
        ),
        "the best key only": (
            _filled(
                ATTENTION,
                "best = (q @ k.mT).argmax(dim=-1, keepdim=True)\n"
                "return torch.gather(v, -2, best.expand(*best.shape[:-1], v.shape[-1]))",
            ),
            None,
            "a hard choice in place of a mixture, far from any one slip",
        ),
        "mean of the values": (
            _filled(
                ATTENTION,
                "return v.mean(dim=-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1])",
            ),
            None,
            "nothing of attention is in it",
        ),
        "no softmax": (
            _filled(ATTENTION, "return q @ k.mT / q.shape[-1] ** 0.5 @ v"),
            None,
            "linear attention without normaliser: a thing of its own",
        ),
        "finished function": (
            _filled(ATTENTION, "return F.scaled_dot_product_attention(q, k, v)"),
            "do without",
        ),
        "our finished weights": (
            _filled(
                ATTENTION,
                "from plainformer.attention import attention_weights as shares\n"
                "return shares(q, k) @ v",
            ),
            "do without",
        ),
    },
    "02-hand-attention": {
        "unscaled": (_hand("q @ k.T", "scores.softmax(dim=-1)"), "without dividing"),
        "divided by 4": (_hand("q @ k.T / 4", "scores.softmax(dim=-1)"), "by d_head, not"),
        "divided by root 2": (_hand("q @ k.T / 2**0.5", "scores.softmax(dim=-1)"), "sqrt(2)"),
        "divided by root 512": (
            _hand("q @ k.T / 512**0.5", "scores.softmax(dim=-1)"),
            "sqrt(512)",
        ),
        "down the columns": (_hand("q @ k.T / 2", "scores.softmax(dim=0)"), "over the queries"),
        "divided by the sum": (
            _hand("q @ k.T / 2", "scores / scores.sum(dim=-1, keepdim=True)"),
            "exponentiates first",
        ),
        "weights rounded": (
            _hand("q @ k.T / 2", "torch.round(scores.softmax(dim=-1), decimals=4)"),
            "rounded to four digits",
        ),
        "scores without the division": (
            _hand("q @ k.T", "(scores / 2).softmax(dim=-1)"),
            "without dividing",
        ),
        "weights given as output": (
            _hand("q @ k.T / 2", "scores.softmax(dim=-1)", "weights"),
            "numbers in each row of the output: expected (3, 3), got (2, 2)",
        ),
        "a row too many": (
            _hand("q @ k.T / 2", "scores.softmax(dim=-1)", "torch.cat([weights @ v, v])"),
            "numbers in each row of the output: expected (3, 3), got (3, 3, 3, 3)",
        ),
        "scores in each other's place": (
            _hand("k @ q.T / 2", "scores.T.softmax(dim=-1)"),
            "k times q",
        ),
        "keys from the wrong weights": (
            _hand("q @ k.T / 2", "scores.softmax(dim=-1)").replace("k = x @", "k = -x @"),
            "rows of k",
        ),
        "only the projections": (
            HAND_PARTIAL.format(q="q", k="k"),
            "missing: scores, weights",
        ),
        "a row too short": (
            HAND_PARTIAL.format(q="[[1, 0, 1, -2], [2, 4, 2]]", k="k"),
            "numbers in each row of q: expected (4, 4), got (4, 3)",
        ),
        "the docstring's dots": (
            HAND_PARTIAL.format(q="q", k="..."),
            "numbers in each row of k: expected 2 items in a list or tuple, got Ellipsis",
        ),
        "dots in the rows": (
            HAND_PARTIAL.format(q="q", k="[[..., ..., ..., ...], [...]]"),
            "numbers in each row of k: expected (4, 4), got (0, 0)",
        ),
        "a list of steps": ("def hand_attention():\n    return [[1, 0, 1, -2]]\n", "a dictionary"),
        "one key missing": (
            _hand("q @ k.T / 2", "scores.softmax(dim=-1)").replace("q=q, ", ""),
            "missing: q",
        ),
    },
    "02-dot-product-variance": {
        "means ignored": (
            _filled(VARIANCE, "return d_head * q_std**2 * k_std**2"),
            "means add two terms",
        ),
        "always d_head": (
            _filled(VARIANCE, "return float(d_head)"),
            None,
            "nothing but the special case; the message shows the numbers",
        ),
        "one component": (
            _filled(
                VARIANCE,
                "return q_std**2 * k_std**2 + q_std**2 * k_mean**2 + k_std**2 * q_mean**2",
            ),
            "adds up d_head of them",
        ),
        "standard deviation": (
            _filled(
                VARIANCE,
                "v = (q_std * k_std) ** 2 + (q_std * k_mean) ** 2 + (k_std * q_mean) ** 2\n"
                "return (d_head * v) ** 0.5",
            ),
            "standard deviation: the variance",
        ),
        "deviations not squared": (
            _filled(
                VARIANCE,
                "return d_head * (q_std * k_std + q_std * k_mean**2 + k_std * q_mean**2)",
            ),
            "square them",
        ),
        "mean of the square": (
            _filled(VARIANCE, "return d_head * (q_std**2 + q_mean**2) * (k_std**2 + k_mean**2)"),
            "square of the mean",
        ),
        "squared width": (
            _filled(
                VARIANCE,
                "v = (q_std * k_std) ** 2 + (q_std * k_mean) ** 2 + (k_std * q_mean) ** 2\n"
                "return d_head**2 * v",
            ),
            "once for each term",
        ),
        "variances added": (
            _filled(VARIANCE, "return d_head * (q_std**2 + k_std**2)"),
            None,
            "the rule for a sum applied to a product",
        ),
        "one mean only": (
            _filled(VARIANCE, "return d_head * (q_std**2 * k_std**2 + q_std**2 * k_mean**2)"),
            None,
            "one of two symmetric terms; naming it would give the formula away",
        ),
        "means not squared": (
            _filled(
                VARIANCE,
                "return d_head * (q_std**2 * k_std**2 + q_std**2 * k_mean + k_std**2 * q_mean)",
            ),
            None,
            "a slip of the pen; the message shows the numbers",
        ),
        "rounded": (
            _filled(
                VARIANCE,
                "v = (q_std * k_std) ** 2 + (q_std * k_mean) ** 2 + (k_std * q_mean) ** 2\n"
                "return d_head * round(v)",
            ),
            None,
            "a slip of the pen; the message shows the numbers",
        ),
    },
    "02-people-say-attention": {
        "all true": (_filled(PEOPLE, "dict.fromkeys(items, 'true')"), "not every answer is right"),
        "all false": (
            _filled(PEOPLE, "dict.fromkeys(items, 'false')"),
            "right minus wrong is -1, this needs 4",
        ),
        "all depends": (_filled(PEOPLE, "dict.fromkeys(items, 'depends')"), "not every answer"),
        "nothing answered": (_filled(PEOPLE, "dict.fromkeys(items)"), "not every answer is right"),
        "folklore": (
            _filled(
                PEOPLE,
                "dict(zip(items, 'false true true true true true true true true true true false"
                " true true'.split()))",
            ),
            "right minus wrong",
        ),
        "one slip": (
            _filled(PEOPLE, RIGHT_QUIZ + " | {'guarantee': 'depends'}"),
            "all fourteen: not every answer is right",
        ),
        "booleans": (
            _filled(PEOPLE, "dict.fromkeys(items, True)"),
            "negative_scores is True, one of 'true', 'false', 'depends' is asked for",
        ),
        "one item forgotten": (
            _filled(PEOPLE, f"{{k: v for k, v in {RIGHT_QUIZ}.items() if k != 'proof'}}"),
            "not every answer is right",
        ),
        "an invented item": (
            _filled(PEOPLE, RIGHT_QUIZ + " | {'colour': 'true'}"),
            "colour is not among the items",
        ),
        "a strange word": (
            _filled(PEOPLE, RIGHT_QUIZ + " | {'proof': 'flase'}"),
            "proof is 'flase'",
        ),
        "a list": (_filled(PEOPLE, f"list({RIGHT_QUIZ}.values())"), "expected a dictionary"),
        "half of it": (
            _filled(PEOPLE, f"{{k: v for k, v in {RIGHT_QUIZ}.items() if items.index(k) < 7}}"),
            "0 right, 0 wrong, 7 open",
        ),
    },
}
