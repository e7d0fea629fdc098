"""Known answers to chapter 01: right ones written in many ways, wrong ones that look reasonable.

A right answer must get every point. A wrong one is a source and the words that its author must
see; or a source, None, and the reason why no message can tell more than where the numbers differ.
"""

RIGHT = {
    "01-find-the-bug-last-state": {
        "freezes the state": """
def read_in(x, lengths, w_x, w_h):
    b, s, _ = x.shape
    state = torch.zeros(b, w_h.shape[0])
    memory = torch.zeros(b, s, w_h.shape[0])
    for i in range(s):
        real = (i < lengths)[:, None]
        new = torch.tanh(x[:, i] @ w_x + state @ w_h)
        state = torch.where(real, new, state)
        memory[:, i] = new.masked_fill(~real, 0.0)
    return memory, state
""",
        "one sentence at a time": """
def read_in(x, lengths, w_x, w_h):
    memory = torch.zeros(x.shape[0], x.shape[1], len(w_h))
    last = []
    for i, n in enumerate(lengths.tolist()):
        state = torch.zeros(len(w_h))
        for j in range(n):
            state = (x[i, j] @ w_x + state @ w_h).tanh()
            memory[i, j] = state
        last.append(state)
    return memory, torch.stack(last)
""",
        "gather and einsum, as a list": """
def read_in(x, lengths, w_x, w_h):
    into = einsum(x, w_x, "b s d_model, d_model d_state -> b s d_state")
    states, state = [], torch.zeros_like(into[:, 0])
    for step in into.unbind(1):
        state = torch.tanh(step + einsum(state, w_h, "b i, i j -> b j"))
        states.append(state)
    states = torch.stack(states, 1)
    place = (lengths - 1)[:, None, None].expand(-1, 1, states.shape[-1])
    padded = torch.arange(x.shape[1])[None, :, None] >= lengths[:, None, None]
    return [states.masked_fill(padded, 0), states.gather(1, place).squeeze(1)]
""",
        "PyTorch's cell": """
def read_in(x, lengths, w_x, w_h):
    cell = torch.nn.RNNCell(*w_x.shape, bias=False)
    cell.load_state_dict({"weight_ih": w_x.T, "weight_hh": w_h.T})
    states, state = [], None
    with torch.no_grad():
        for i in range(x.shape[1]):
            state = cell(x[:, i], state)
            states.append(state)
    states = torch.stack(states, dim=1)
    return (
        torch.stack([torch.cat([a[:n], 0 * a[n:]]) for a, n in zip(states, lengths)]),
        torch.stack([a[n - 1] for a, n in zip(states, lengths)]),
    )
""",
    },
    "01-context-vector": {
        "loops": """
def context_vectors(scores, memory, lengths):
    found = torch.zeros(*scores.shape[:2], memory.shape[-1])
    for b in range(scores.shape[0]):
        n = int(lengths[b])
        for t in range(scores.shape[1]):
            row = scores[b, t, :n].tolist()
            powers = [math.exp(e - max(row)) for e in row]
            for i in range(n):
                found[b, t] += powers[i] / sum(powers) * memory[b, i]
    return found
""",
        "slices": """
def context_vectors(scores, memory, lengths):
    pairs = zip(scores, memory, lengths)
    return torch.stack([torch.softmax(e[:, :n], dim=1) @ h[:n] for e, h, n in pairs])
""",
        "exponentials masked, then divided": """
def context_vectors(scores, memory, lengths):
    real = (torch.arange(memory.shape[1]) < lengths[:, None])[:, None]
    top = scores.masked_fill(~real, -float("inf")).amax(dim=-1, keepdim=True)
    powers = torch.exp((scores - top).clamp(max=0)) * real
    return einsum(powers / powers.sum(-1, keepdim=True), memory, "b t s, b s d -> b t d")
""",
        "logsumexp": """
def context_vectors(scores, memory, lengths):
    real = torch.arange(memory.shape[1]) < lengths[:, None, None]
    x = scores.masked_fill(~real, -torch.inf)
    return (x - x.logsumexp(-1, keepdim=True)).exp() @ memory
""",
        "a filler of -1e9": """
def context_vectors(scores, memory, lengths):
    real = torch.arange(memory.shape[1]) < lengths[:, None, None]
    return torch.where(real, scores, -1e9).softmax(2) @ memory
""",
        "a filler just low enough": """
def context_vectors(scores, memory, lengths):
    real = torch.arange(memory.shape[1]) < lengths[:, None, None]
    return scores.masked_fill(~real, -2e4).softmax(-1) @ memory
""",
        "a bias in place on a copy": """
def context_vectors(scores, memory, lengths):
    e = scores.clone()
    for i, n in enumerate(lengths):
        e[i, :, n:] = torch.finfo(e.dtype).min
    return torch.bmm(e.softmax(-1), memory)
""",
    },
    "01-additive-attention": {
        "logsumexp": """
def additive_weights(queries, memory, w_query, w_memory, v):
    q, h = (queries @ w_query).unsqueeze(-2), (memory @ w_memory).unsqueeze(-3)
    x = torch.tanh(q + h) @ v
    return (x - x.logsumexp(-1, keepdim=True)).exp()
""",
        "loops": """
def additive_weights(queries, memory, w_query, w_memory, v):
    t, s = queries.shape[-2], memory.shape[-2]
    Q, H = queries.reshape(-1, t, queries.shape[-1]), memory.reshape(-1, s, memory.shape[-1])
    scores = torch.zeros(len(Q), t, s)
    for b in range(len(Q)):
        for i in range(t):
            for j in range(s):
                scores[b, i, j] = v @ torch.tanh(w_query.T @ Q[b, i] + w_memory.T @ H[b, j])
    return torch.softmax(scores, dim=-1).reshape(*queries.shape[:-1], s)
""",
        "concatenated": """
def additive_weights(queries, memory, w_query, w_memory, v):
    t, s = queries.shape[-2], memory.shape[-2]
    q = queries.unsqueeze(-2).expand(*queries.shape[:-1], s, -1)
    h = memory.unsqueeze(-3).expand(*queries.shape[:-1], s, -1)
    w = torch.cat([w_query, w_memory], dim=0)
    hidden = torch.tanh(torch.cat([q, h], dim=-1) @ w)
    return (hidden * v).sum(dim=-1).softmax(dim=-1)
""",
        "einsum": """
def additive_weights(queries, memory, w_query, w_memory, v):
    q = torch.einsum("...td,dk->...tk", queries, w_query)
    h = torch.einsum("...sd,dk->...sk", memory, w_memory)
    scores = einsum(torch.tanh(q[..., None, :] + h[..., None, :, :]), v, "... k, k -> ...")
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return powers / powers.sum(dim=-1, keepdim=True)
""",
        "one query at a time": """
def additive_weights(queries, memory, w_query, w_memory, v):
    offered = memory @ w_memory
    rows = []
    for i in range(queries.shape[-2]):
        asked = queries[..., i : i + 1, :] @ w_query
        rows.append(torch.softmax(torch.tanh(offered + asked) @ v, dim=-1))
    return torch.stack(rows, dim=-2)
""",
    },
    "01-multiplicative-attention": {
        "loops": """
def multiplicative_weights(queries, memory, w=None):
    if w is None:
        w = torch.eye(queries.shape[-1])
    t, s = queries.shape[-2], memory.shape[-2]
    Q, H = queries.reshape(-1, t, queries.shape[-1]), memory.reshape(-1, s, memory.shape[-1])
    scores = torch.zeros(len(Q), t, s)
    for b in range(len(Q)):
        for i in range(t):
            for j in range(s):
                scores[b, i, j] = Q[b, i] @ w @ H[b, j]
    return scores.softmax(-1).reshape(*queries.shape[:-1], s)
""",
        "the memory turned instead": """
def multiplicative_weights(queries, memory, w=None):
    keys = memory if w is None else memory @ w.transpose(0, 1)
    return torch.softmax(torch.matmul(queries, keys.transpose(-2, -1)), dim=-1)
""",
        "einsum": """
def multiplicative_weights(queries, memory, w=None):
    if w is None:
        scores = torch.einsum("...td,...sd->...ts", queries, memory)
    else:
        scores = torch.einsum("...td,de,...se->...ts", queries, w, memory)
    return scores.softmax(dim=-1)
""",
        "states first": """
def multiplicative_weights(queries, memory, w=None):
    if isinstance(w, torch.Tensor):
        queries = einsum(queries, w, "... q, q m -> ... m")
    by_state = torch.softmax(memory @ queries.mT, dim=-2)
    return by_state.mT
""",
        "PyTorch's own, unscaled": """
def multiplicative_weights(queries, memory, w=None):
    q = queries if w is None else queries @ w
    eye = torch.eye(memory.shape[-2])
    eye = eye.expand(*memory.shape[:-2], *eye.shape)
    return torch.nn.functional.scaled_dot_product_attention(q, memory, eye, scale=1.0)
""",
    },
    "01-attentive-decoder-step": {
        "loops": """
def decoder_step(state, symbol, memory, score, cell):
    scores = score(state, memory)
    weights = torch.zeros(scores.shape)
    found = torch.zeros(len(state), memory.shape[-1])
    for b in range(len(state)):
        weights[b] = torch.softmax(scores[b], dim=0)
        for i in range(memory.shape[1]):
            found[b] += weights[b, i] * memory[b, i]
    return cell(torch.hstack([symbol, found]), state), weights
""",
        "einsum": """
def decoder_step(state, symbol, memory, score, cell):
    e = score(state, memory)
    powers = torch.exp(e - e.amax(dim=1, keepdim=True))
    weights = powers / powers.sum(dim=1, keepdim=True)
    c = torch.einsum("bs,bsd->bd", weights, memory)
    new_state = cell(torch.cat((symbol, c), 1), state)
    return new_state, weights
""",
        "broadcasting, as a list": """
def decoder_step(state, symbol, memory, score, cell):
    weights = torch.softmax(score(state, memory), -1)
    inputs = torch.cat([symbol, (weights[..., None] * memory).sum(dim=1)], dim=-1)
    return [cell(inputs, state), weights]
""",
    },
    "01-path-length": {
        "search": """
def path_lengths(n, kernel):
    reach, layers = 0, 0
    while reach < n - 1:
        reach, layers = reach + (kernel - 1) // 2, layers + 1
    seen, dilated = 1, 0
    while seen < n:
        seen, dilated = seen * kernel, dilated + 1
    return dict(
        recurrent_steps=n,
        recurrent_path=1 + (n - 1),
        attention_steps=1,
        attention_path=1,
        convolution_layers=layers,
        dilated_layers=dilated,
        start_only_path=n + n,
        looking_back_path=2,
    )
""",
        "ceil and a rounded logarithm": """
def path_lengths(n, kernel):
    answer = {"recurrent_steps": n, "recurrent_path": n, "start_only_path": 2 * n}
    answer |= {"attention_steps": 1, "attention_path": 1, "looking_back_path": 2}
    answer["convolution_layers"] = math.ceil(2 * (n - 1) / (kernel - 1))
    answer["dilated_layers"] = math.ceil(round(math.log(n, kernel), 9))
    return answer
""",
        "tensors": """
def path_lengths(n, kernel):
    powers = kernel ** torch.arange(18)
    return {
        "recurrent_steps": torch.tensor(n),
        "recurrent_path": torch.tensor(n),
        "attention_steps": torch.tensor(1),
        "attention_path": 1,
        "convolution_layers": (n - 2) // (kernel // 2) + 1,
        "dilated_layers": ((powers < n) & (powers > 0)).sum(),
        "start_only_path": torch.tensor(2 * n),
        "looking_back_path": 2,
    }
""",
    },
    "01-read-an-alignment": {
        "one line": """
def read_an_alignment():
    words = "reverse,swap pairs,fixed vector,plain mean,copy,first to the end,one late"
    return dict(zip("ABCDEFGH", (words + ",odd places first").split(",")))
""",
        "capitals and blanks": """
def read_an_alignment():
    answer = {"E": "Copy", "A": " reverse", "G": "One late", "C": "FIXED VECTOR "}
    answer.update(B="Swap Pairs", D="plain mean", F="first to the end", H="odd places first")
    return answer
""",
    },
}

READ_IN = """
def read_in(x, lengths, w_x, w_h):
    b, s, _ = x.shape
    state = torch.zeros(b, w_h.shape[0])
    states = []
    for i in range(s):
        state = torch.tanh(x[:, i] @ w_x + state @ w_h)
        states.append(state)
    states = torch.stack(states, dim=1)
    real = torch.arange(s) < lengths[:, None]
    memory, c = states * real[..., None], states[torch.arange(b), lengths - 1]
    {body}
"""
CONTEXT = """
def context_vectors(scores, memory, lengths):
    real = torch.arange(scores.shape[-1]) < lengths[:, None, None]
    low = scores.masked_fill(~real, -1e30)
    {body}
"""
ADDITIVE = """
def additive_weights(queries, memory, w_query, w_memory, v):
    q = (queries @ w_query)[..., :, None, :]
    h = (memory @ w_memory)[..., None, :, :]
    {body}
"""
PRODUCT = """
def multiplicative_weights(queries, memory, w=None):
    q = queries if w is None else queries @ w
    {body}
"""
STEP = """
def decoder_step(state, symbol, memory, score, cell):
    def mixed(weights):
        return (weights[:, None] @ memory)[:, 0]

    weights = score(state, memory).softmax(dim=-1)
    {body}
"""
PATHS = """
def path_lengths(n, kernel):
    half = (kernel - 1) // 2
    dilated = 0
    while kernel**dilated < n:
        dilated += 1
    answer = {{"recurrent_steps": n, "recurrent_path": n}}
    answer |= {{"attention_steps": 1, "attention_path": 1}}
    answer |= {{"convolution_layers": -(-(n - 1) // half), "dilated_layers": dilated}}
    answer |= {{"start_only_path": 2 * n, "looking_back_path": 2}}
    {body}
    return answer
"""
MAPS = """
def read_an_alignment():
    words = "reverse,swap pairs,fixed vector,plain mean,copy,first to the end,one late"
    answer = dict(zip("ABCDEFGH", (words + ",odd places first").split(",")))
    {body}
"""


def _filled(template: str, body: str) -> str:
    return template.format(body=body.replace("\n", "\n    "))


def _path(key: str, formula: str, words: str | None, *why: str) -> tuple:
    return _filled(PATHS, f'answer["{key}"] = {formula}'), words, *why


WRONG = {
    "01-find-the-bug-last-state": {
        "the draft": (
            _filled(
                READ_IN,
                "real = torch.arange(s) <= lengths[:, None]\n"
                "memory = states * real[..., None]\nreturn memory, memory[:, -1]",
            ),
            "the draft as it stood",
        ),
        "only c mended": (
            _filled(
                READ_IN,
                "real = torch.arange(s) <= lengths[:, None]\nreturn states * real[..., None], c",
            ),
            "keeps the row after the last real one",
        ),
        "only memory mended": (
            _filled(READ_IN, "return memory, memory[:, -1]"),
            "c is its last row",
        ),
        "the state after the padding": (
            _filled(READ_IN, "return memory, state"),
            "after the padding was read",
        ),
        "the state one late": (
            _filled(
                READ_IN,
                "return memory, states[torch.arange(b), lengths.clamp(max=s - 1)]",
            ),
            "one step after the last real",
        ),
        "index at the length": (
            _filled(READ_IN, "return memory, states[torch.arange(b), lengths]"),
            "stopped with",
        ),
        "padding not zeroed": (_filled(READ_IN, "return states, c"), "does not hold zeros"),
        "the first sentence's length": (
            _filled(READ_IN, "return memory, memory[:, lengths[0] - 1]"),
            "where the first sentence ends",
        ),
        "c for each place": (
            _filled(READ_IN, "return memory, states[:, lengths - 1]"),
            "number of axes differs",
        ),
        "the largest of each state": (
            _filled(READ_IN, "return memory, memory.amax(dim=1)"),
            None,
            "one of many ways to pool; the message shows the place",
        ),
        "the mean of the states": (
            _filled(READ_IN, "return memory, memory.sum(dim=1) / lengths[:, None]"),
            None,
            "one of many ways to pool; the message shows the place",
        ),
        "c alone": (_filled(READ_IN, "return c"), "2 items in a list or tuple"),
        "swapped": (_filled(READ_IN, "return c, memory"), "number of axes differs"),
    },
    "01-context-vector": {
        "padding kept": (
            _filled(CONTEXT, "return scores.softmax(dim=-1) @ memory"),
            "gives the padding a share",
        ),
        "padding cut afterwards": (
            _filled(CONTEXT, "return (scores.softmax(dim=-1) * real) @ memory"),
            "sum to less than one",
        ),
        "padding scored 0": (
            _filled(CONTEXT, "return (scores * real).softmax(dim=-1) @ memory"),
            "e to the power 0 is 1",
        ),
        "one padded place kept": (
            _filled(
                CONTEXT,
                "real = torch.arange(scores.shape[-1]) <= lengths[:, None, None]\n"
                "return scores.masked_fill(~real, -1e30).softmax(dim=-1) @ memory",
            ),
            "keeps the first padded place",
        ),
        "over the queries": (
            _filled(
                CONTEXT,
                "shares = low.softmax(dim=-2).masked_fill(~real, 0.0)\nreturn shares @ memory",
            ),
            "over the queries",
        ),
        "over the batch": (
            _filled(
                CONTEXT,
                "shares = low.softmax(dim=0).masked_fill(~real, 0.0)\nreturn shares @ memory",
            ),
            "over the first axis",
        ),
        "over the queries, -1e9 and no second mask": (
            _filled(CONTEXT, "return scores.masked_fill(~real, -1e9).softmax(1) @ memory"),
            "over the queries",
        ),
        "over the queries, -inf": (
            _filled(CONTEXT, "return scores.masked_fill(~real, -torch.inf).softmax(1) @ memory"),
            "over the queries",
        ),
        "masked after, divided again": (
            _filled(
                CONTEXT,
                "shares = scores.softmax(dim=-1) * real\n"
                "return shares / shares.sum(-1, keepdim=True) @ memory",
            ),
            "the padding still sets the maximum",
        ),
        "masked after, divided by a little more": (
            _filled(
                CONTEXT,
                "shares = scores.softmax(dim=-1) * real\n"
                "return shares / (shares.sum(-1, keepdim=True) + 1e-9) @ memory",
            ),
            "the padding still sets the maximum",
        ),
        "over the axis that is 1 by default": (
            _filled(
                CONTEXT,
                "shares = low.softmax(1).masked_fill(~real, 0.0)\nreturn shares @ memory",
            ),
            "over the queries",
        ),
        "last real state": (
            _filled(
                CONTEXT,
                "last = memory[torch.arange(len(memory)), lengths - 1]\n"
                "return last[:, None].expand(-1, scores.shape[1], -1)",
            ),
            "the fixed vector",
        ),
        "last row": (
            _filled(CONTEXT, "return memory[:, -1:].expand(-1, scores.shape[1], -1)"),
            "not even that",
        ),
        "plain mean": (
            _filled(CONTEXT, "return (0 * scores + real / lengths[:, None, None]) @ memory"),
            "the scores play no part",
        ),
        "the best state": (
            _filled(
                CONTEXT,
                "return memory[torch.arange(len(memory))[:, None], low.argmax(dim=-1)]",
            ),
            "mixes all of them",
        ),
        "scores as shares": (
            _filled(CONTEXT, "return (scores * real) @ memory"),
            "by the scores themselves",
        ),
        "shares returned": (
            _filled(CONTEXT, "return low.softmax(dim=-1)"),
            "expected shape",
        ),
        "unstable": (
            _filled(
                CONTEXT,
                "powers = scores.exp() * real\n"
                "return powers @ memory / powers.sum(dim=-1, keepdim=True)",
            ),
            "NaN or infinite",
        ),
        "divided by s": (
            _filled(CONTEXT, "return low.softmax(dim=-1) @ memory / scores.shape[-1]"),
            None,
            "a slip; the message shows the place and both numbers",
        ),
        "a floor that is too high": (
            _filled(
                CONTEXT,
                "return scores.masked_fill(~real, -1e3).softmax(dim=-1) @ memory",
            ),
            None,
            "right unless real scores are lower still; the message shows the case",
        ),
        "lengths of the first sentence": (
            _filled(
                CONTEXT,
                "n = lengths[0]\nreturn scores[..., :n].softmax(dim=-1) @ memory[:, :n]",
            ),
            None,
            "right where the first sentence is the shortest; the message shows the place",
        ),
        "the library's": (
            _filled(
                CONTEXT,
                "from plainformer.models import alignment\n"
                "return alignment(scores, real[:, 0]) @ memory",
            ),
            "do without",
        ),
    },
    "01-additive-attention": {
        "over the queries": (
            _filled(ADDITIVE, "return (torch.tanh(q + h) @ v).softmax(dim=-2)"),
            "over the queries",
        ),
        "over the first axis": (
            _filled(ADDITIVE, "return (torch.tanh(q + h) @ v).softmax(dim=0)"),
            "over the first axis",
        ),
        "over everything": (
            _filled(
                ADDITIVE,
                "scores = torch.tanh(q + h) @ v\n"
                "return scores.flatten().softmax(0).view_as(scores)",
            ),
            "one softmax over the whole tensor",
        ),
        "scores": (
            _filled(ADDITIVE, "return torch.tanh(q + h) @ v"),
            "the shares are their softmax",
        ),
        "no tanh": (
            _filled(ADDITIVE, "return ((q + h) @ v).softmax(dim=-1)"),
            "the softmax does not see it",
        ),
        "no query": (
            _filled(
                ADDITIVE,
                "scores = torch.tanh(memory @ w_memory) @ v\n"
                "scores = scores[..., None, :].expand(*queries.shape[:-1], -1)\n"
                "return scores.softmax(dim=-1)",
            ),
            "The query has no say",
        ),
        "no query and no tanh": (
            _filled(
                ADDITIVE,
                "scores = (memory @ w_memory @ v)[..., None, :]\n"
                "return scores.expand(*queries.shape[:-1], -1).softmax(dim=-1)",
            ),
            "The query has no say",
        ),
        "over axis 1": (
            _filled(ADDITIVE, "return (torch.tanh(q + h) @ v).softmax(1)"),
            "over axis 1",
        ),
        "no dim": (
            _filled(ADDITIVE, "return torch.nn.functional.softmax(torch.tanh(q + h) @ v)"),
            "without dim=",
        ),
        "two tanhs": (
            _filled(ADDITIVE, "return ((torch.tanh(q) + torch.tanh(h)) @ v).softmax(dim=-1)"),
            "The query has no say",
        ),
        "tanh outside": (
            _filled(ADDITIVE, "return torch.tanh((q + h) @ v).softmax(dim=-1)"),
            "after the product with v",
        ),
        "a product inside": (
            _filled(ADDITIVE, "return (torch.tanh(q * h) @ v).softmax(dim=-1)"),
            "multiplies the two parts",
        ),
        "no v": (
            _filled(ADDITIVE, "return torch.tanh(q + h).sum(dim=-1).softmax(dim=-1)"),
            "v weighs them",
        ),
        "sigmoid": (
            _filled(ADDITIVE, "return (torch.sigmoid(q + h) @ v).softmax(dim=-1)"),
            "a sigmoid",
        ),
        "relu": (
            _filled(ADDITIVE, "return (torch.relu(q + h) @ v).softmax(dim=-1)"),
            None,
            "one of many other functions; the message shows the place",
        ),
        "a difference": (
            _filled(ADDITIVE, "return (torch.tanh(q - h) @ v).softmax(dim=-1)"),
            None,
            "a slip of the pen; the message shows the place",
        ),
        "queries and states swapped": (
            _filled(
                ADDITIVE,
                "q, h = q.transpose(-3, -2), h.transpose(-3, -2)\n"
                "return (torch.tanh(q + h) @ v).softmax(dim=-1)",
            ),
            "expected shape",
        ),
        "no axes": (
            _filled(ADDITIVE, "return (torch.tanh(queries @ w_query + memory @ w_memory) @ v)"),
            "stopped with",
        ),
        "only two axes": (
            _filled(
                ADDITIVE,
                "q, h = (queries @ w_query)[:, None], (memory @ w_memory)[None]\n"
                "return (torch.tanh(q + h) @ v).softmax(dim=-1)",
            ),
            "stopped with",
        ),
        "w transposed": (
            _filled(
                ADDITIVE,
                "q = (queries @ w_query.T)[..., :, None, :]\n"
                "return (torch.tanh(q + h) @ v).softmax(dim=-1)",
            ),
            "stopped with",
        ),
        "not shifted": (
            _filled(
                ADDITIVE,
                "powers = (torch.tanh(q + h) @ v).exp()\n"
                "return powers / powers.sum(dim=-1, keepdim=True)",
            ),
            "NaN or infinite",
        ),
        "the context": (
            _filled(ADDITIVE, "return (torch.tanh(q + h) @ v).softmax(dim=-1) @ memory"),
            "expected shape",
        ),
    },
    "01-multiplicative-attention": {
        "over the queries": (
            _filled(PRODUCT, "return (q @ memory.mT).softmax(dim=-2)"),
            "over the queries",
        ),
        "over the first axis": (
            _filled(PRODUCT, "return (q @ memory.mT).softmax(dim=0)"),
            "over the first axis",
        ),
        "scores": (_filled(PRODUCT, "return q @ memory.mT"), "the shares are their softmax"),
        "over axis 1": (
            _filled(PRODUCT, "return (q @ memory.mT).softmax(1)"),
            "over axis 1",
        ),
        "no dim": (
            _filled(PRODUCT, "return torch.nn.functional.softmax(q @ memory.mT)"),
            "without dim=",
        ),
        "w on the memory": (
            _filled(
                PRODUCT,
                "h = memory if w is None else memory @ w\nreturn (queries @ h.mT).softmax(dim=-1)",
            ),
            "w transposed",
        ),
        "w left out": (
            _filled(
                PRODUCT,
                "q = queries[..., : memory.shape[-1]]\n"
                "return (q @ memory[..., : q.shape[-1]].mT).softmax(dim=-1)",
            ),
            "leaves w out",
        ),
        "w left out, no cutting": (
            _filled(PRODUCT, "return (queries @ memory.mT).softmax(dim=-1)"),
            "leaves w out",
        ),
        "w transposed": (
            _filled(
                PRODUCT,
                "q = queries if w is None else queries @ w.T\n"
                "return (q @ memory.mT).softmax(dim=-1)",
            ),
            "w transposed",
        ),
        "w on both sides": (
            _filled(
                PRODUCT,
                "h = memory if w is None else memory @ w.T\nreturn (q @ h.mT).softmax(dim=-1)",
            ),
            "both sides by w",
        ),
        "divided by the root": (
            _filled(PRODUCT, "return (q @ memory.mT / q.shape[-1] ** 0.5).softmax(dim=-1)"),
            "in chapter 02",
        ),
        "not divided by the sum": (
            _filled(PRODUCT, "return (q @ memory.mT).exp()"),
            "before they are divided",
        ),
        "cosine": (
            _filled(
                PRODUCT,
                "unit = lambda x: x / x.norm(dim=-1, keepdim=True).clamp(min=1e-12)\n"
                "return (unit(q) @ unit(memory).mT).softmax(dim=-1)",
            ),
            "lengths count",
        ),
        "transposed": (
            _filled(PRODUCT, "return (memory @ q.mT).softmax(dim=-1)"),
            "expected shape",
        ),
        "truth of a tensor": (
            _filled(
                PRODUCT,
                "q = queries @ w if w else queries\nreturn (q @ memory.mT).softmax(dim=-1)",
            ),
            "neither true nor false",
        ),
        "w always needed": (
            _filled(PRODUCT, "return (queries @ w @ memory.mT).softmax(dim=-1)"),
            "stopped with",
        ),
        "tanh of the product": (
            _filled(PRODUCT, "return torch.tanh(q @ memory.mT).softmax(dim=-1)"),
            None,
            "a mixture of both kinds; the message shows the place",
        ),
        "not shifted": (
            _filled(
                PRODUCT,
                "powers = (q @ memory.mT).exp()\nreturn powers / powers.sum(dim=-1, keepdim=True)",
            ),
            "NaN or infinite",
        ),
        "only two axes": (
            _filled(PRODUCT, "return (q @ memory.t()).softmax(dim=-1)"),
            "stopped with",
        ),
    },
    "01-attentive-decoder-step": {
        "the new state asks": (
            _filled(
                STEP,
                "new = cell(torch.cat([symbol, mixed(weights)], dim=-1), state)\n"
                "return new, score(new, memory).softmax(dim=-1)",
            ),
            "the old state asks",
        ),
        "the first sentence's memory": (
            _filled(
                STEP,
                "found = weights @ memory[0]\n"
                "return cell(torch.cat([symbol, found], dim=-1), state), weights",
            ),
            "of the first sentence for the whole batch",
        ),
        "found before symbol": (
            _filled(
                STEP,
                "return cell(torch.cat([mixed(weights), symbol], dim=-1), state), weights",
            ),
            "the symbol comes first",
        ),
        "found not fed": (
            _filled(
                STEP,
                "nothing = torch.zeros(len(state), memory.shape[-1])\n"
                "return cell(torch.cat([symbol, nothing], dim=-1), state), weights",
            ),
            "never reaches the cell",
        ),
        "symbol alone": (_filled(STEP, "return cell(symbol, state), weights"), "Next:"),
        "last state fed": (
            _filled(
                STEP,
                "return cell(torch.cat([symbol, memory[:, -1]], dim=-1), state), weights",
            ),
            "not the mixture",
        ),
        "over the batch": (
            _filled(
                STEP,
                "weights = score(state, memory).softmax(dim=0)\n"
                "return cell(torch.cat([symbol, mixed(weights)], dim=-1), state), weights",
            ),
            "over the first axis",
        ),
        "mixed with the scores": (
            _filled(
                STEP,
                "weights = score(state, memory)\n"
                "return cell(torch.cat([symbol, mixed(weights)], dim=-1), state), weights",
            ),
            "mixes with the scores",
        ),
        "scores beside the state": (
            _filled(
                STEP,
                "return cell(torch.cat([symbol, mixed(weights)], -1), state), score(state, memory)",
            ),
            "not the shares",
        ),
        "a fresh state": (
            _filled(
                STEP,
                "return cell(torch.cat([symbol, mixed(weights)], -1), 0 * state), weights",
            ),
            "zeros for the old state",
        ),
        "arguments of the cell swapped": (
            _filled(STEP, "return cell(state, torch.cat([symbol, mixed(weights)], -1)), weights"),
            None,
            "which shape comes of it depends on the cell; the message shows the place",
        ),
        "weights first": (
            _filled(
                STEP,
                "return weights, cell(torch.cat([symbol, mixed(weights)], dim=-1), state)",
            ),
            "expected shape",
        ),
        "state alone": (
            _filled(STEP, "return cell(torch.cat([symbol, mixed(weights)], dim=-1), state)"),
            "2 items in a list or tuple",
        ),
        "found beside the state": (
            _filled(
                STEP,
                "return cell(torch.cat([symbol, mixed(weights)], -1), state), mixed(weights)",
            ),
            None,
            "of the right shape where there are as many states as numbers in one; the place shows",
        ),
        "mixed across the batch": (
            _filled(
                STEP,
                "found = (weights @ memory).mean(dim=0)\n"
                "return cell(torch.cat([symbol, found], dim=-1), state), weights",
            ),
            None,
            "crashes or mixes sentences, as the sizes happen to be; the message shows which",
        ),
    },
    "01-path-length": {
        "one step too few": _path("recurrent_steps", "n - 1", "the first state must be computed"),
        "all at once": _path("recurrent_steps", "1", "cannot all be done at once"),
        "the arrow from the input forgotten": _path("recurrent_path", "n - 1", "from x_1 to h_1"),
        "an arrow too many": _path("recurrent_path", "n + 1", "one arrow too many"),
        "attention waits": _path("attention_steps", "n", "nothing waits"),
        "attention walks": _path("attention_path", "n", "nothing waits"),
        "attention walks n - 1": _path(
            "attention_path", "n - 1", "nothing waits for its neighbour"
        ),
        "attention waits n - 1": _path("attention_steps", "n - 1", "nothing waits"),
        "half the way": _path("start_only_path", "n", "through one of the two networks"),
        "vector at every step": _path("start_only_path", "n + 1", "leads to s_1 alone"),
        "2n - 1": _path("start_only_path", "2 * n - 1", "from x_1 to h_1"),
        "average counted": _path("looking_back_path", "3", "a stop of its own"),
        "looking back along the encoder": _path("looking_back_path", "n + 1", "h_1 leads to s_n"),
        "input left out": _path("looking_back_path", "1", "from x_1 to h_1"),
        "both sides": _path(
            "convolution_layers", "-(-(n - 1) // (kernel - 1))", "the way to position 1"
        ),
        "n / k": _path("convolution_layers", "-(-n // kernel)", "half of what is left"),
        "rounded down": _path("convolution_layers", "(n - 1) // half", "rounds down"),
        "n positions": _path("convolution_layers", "-(-n // half)", "n - 1 steps"),
        "dilated rounded down": _path(
            "dilated_layers", "int(math.log(n) / math.log(kernel) + 1e-9)", "rounds down"
        ),
        "float logarithm": _path(
            "dilated_layers",
            "math.ceil(math.log(n) / math.log(kernel))",
            "a logarithm in floats",
        ),
        "float logarithm, of two arguments": _path(
            "dilated_layers", "math.ceil(math.log(n, kernel))", "a logarithm in floats"
        ),
        "n // kernel": _path("convolution_layers", "n // kernel", "whole kernels fit"),
        "one position a layer": _path("convolution_layers", "n - 1", "one position further"),
        "dilated n // kernel": _path("dilated_layers", "n // kernel", "whole kernels fit"),
        "dilated n - 1": _path("dilated_layers", "n - 1", "one position further"),
        "doubling": _path("dilated_layers", "math.ceil(math.log2(n))", "multiplied by the kernel"),
        "not dilated": _path(
            "dilated_layers", "-(-(n - 1) // (kernel - 1))", "the count without gaps"
        ),
        "one more for powers": _path(
            "dilated_layers",
            "int(math.log(n) / math.log(kernel) + 1e-9) + 1",
            "a power of the kernel",
        ),
        "a float": _path(
            "convolution_layers", "(n - 1) / half", None, "a fraction of a layer; not told"
        ),
        "a key missing": (
            _filled(PATHS, 'del answer["recurrent_path"]\ndel answer["dilated_layers"]'),
            "missing: recurrent_path",
        ),
        "a list": (_filled(PATHS, "return list(answer.values())"), "expected a dictionary"),
    },
    "01-read-an-alignment": {
        "late and plain exchanged": (
            _filled(MAPS, 'answer.update(A="one late", G="reverse")\nreturn answer'),
            "not every answer is right",
        ),
        "copy for reverse": (
            _filled(MAPS, 'answer.update(A="copy", E="reverse")\nreturn answer'),
            "not every answer is right",
        ),
        "rotated the other way": (
            _filled(MAPS, 'answer["F"] = "last to the front"\nreturn answer'),
            "not every answer is right",
        ),
        "even for odd": (
            _filled(MAPS, 'answer["H"] = "even places first"\nreturn answer'),
            "not every answer is right",
        ),
        "mean and vector exchanged": (
            _filled(MAPS, 'answer.update(C="plain mean", D="fixed vector")\nreturn answer'),
            "not every answer is right",
        ),
        "all reverse": (
            _filled(MAPS, 'return dict.fromkeys("ABCDEFGH", "reverse")'),
            "not every answer is right",
        ),
        "half of them": (
            _filled(MAPS, 'return {key: answer[key] for key in "ABCD"}'),
            "not every answer is right",
        ),
        "another word": (
            _filled(MAPS, 'answer["A"] = "backwards"\nreturn answer'),
            "A is 'backwards'",
        ),
        "a list": (_filled(MAPS, "return list(answer.values())"), "expected a dictionary"),
    },
}
