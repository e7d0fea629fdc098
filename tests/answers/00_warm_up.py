"""Right and wrong answers to chapter 00; each source replaces the cell of its exercise.

A wrong answer comes with words that the learner must be shown, or with None and the reason why no
message can tell.
"""

SHAPES = """
def shapes(b, t, s, d_model, d_head):
    return {{
        "q": {q},
        "scores": {scores},
        "row_sum": {row_sum},
        "column_mean": {column_mean},
        "row_max": {row_max},
        "out": {out},
        "first_word": {first_word},
        "one_sentence": {one_sentence},
    }}
"""


def _shapes(**wrong: str) -> str:
    """A prediction that is wrong for the lines in `wrong`, and right for the others."""
    right = {
        "q": "(b, t, d_head)",
        "scores": "(b, t, s)",
        "row_sum": "(b, t)",
        "column_mean": "(b, s)",
        "row_max": "(b, t, 1)",
        "out": "(b, t, d_model)",
        "first_word": "(b, d_model)",
        "one_sentence": "(t, s)",
    }
    return SHAPES.format(**right | wrong)


RIGHT = {
    "00-shapes": {
        "run the lines and look": """
def shapes(b, t, s, d_model, d_head):
    x, w = torch.ones(b, t, d_model), torch.ones(d_model, d_head)
    k, v = torch.ones(b, s, d_head), torch.ones(b, s, d_model)
    q = x @ w
    scores = q @ k.mT
    return {
        "q": q.shape,
        "scores": scores.shape,
        "row_sum": scores.sum(dim=-1).shape,
        "column_mean": scores.mean(dim=1).shape,
        "row_max": scores.amax(dim=-1, keepdim=True).shape,
        "out": (scores @ v).shape,
        "first_word": x[:, 0].shape,
        "one_sentence": scores[0].shape,
    }
""",
        "lists, in another order": """
def shapes(b, t, s, d_model, d_head):
    found = dict(one_sentence=[t, s], first_word=[b, d_model])
    found["scores"] = [b] + found["one_sentence"]
    found["row_sum"] = found["scores"][:-1]
    found["row_max"] = found["row_sum"] + [1]
    found["column_mean"] = [b, s]
    found["q"] = [b, t, d_head]
    found["out"] = [b, t, d_model]
    return found
""",
    },
    "00-broadcast": {
        "unsqueeze": """
def centre(x, gain):
    return (x - x.mean(-1).unsqueeze(-1)) * gain.unsqueeze(1)
""",
        "loops": """
def centre(x, gain):
    out = torch.empty_like(x)
    for j in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[j, i] = (x[j, i] - x[j, i].sum() / x.shape[2]) * gain[i]
    return out
""",
        "einsum, sum over the width": """
def centre(x, gain):
    means = x.sum(dim=2, keepdim=True) / x.shape[2]
    return einsum(x - means, gain, "b t d_model, t -> b t d_model")
""",
        "in place, on a copy": """
def centre(x, gain):
    x = x.clone()
    x -= x.mean(dim=-1, keepdim=True)
    x *= gain.view(1, -1, 1)
    return x
""",
    },
    "00-transpose-or-view": {
        "a block of zeros, filled row by row": """
def by_sentence(rows, b):
    t = len(rows) // b
    block = torch.zeros(b, t, rows.shape[1])
    for place, row in enumerate(rows):
        block[place % b, place // b] = row
    return block
""",
        "einops": """
def by_sentence(rows, b):
    return rearrange(rows, "(t b) d_model -> b t d_model", b=b)
""",
        "strides": """
def by_sentence(rows, b):
    return torch.stack([rows[j::b] for j in range(b)])
""",
        "view and permute": """
def by_sentence(rows, b):
    t, d_model = rows.shape[0] // b, rows.shape[1]
    return rows.contiguous().view(t, b, d_model).permute(1, 0, 2).contiguous()
""",
        "an index made by broadcasting": """
def by_sentence(rows, b):
    t = len(rows) // b
    return rows[torch.arange(b)[:, None] + b * torch.arange(t)]
""",
        "swapaxes": """
def by_sentence(rows, b):
    return torch.swapaxes(rows.unflatten(0, (-1, b)), 0, 1)
""",
    },
    "00-boolean-mask": {
        "where": """
def best_score(scores, mask):
    low = torch.full_like(scores, -torch.inf)
    best = torch.where(mask, scores, low).max(dim=1).values
    return torch.where(mask.any(dim=1), best, torch.zeros_like(best))
""",
        "loops": """
def best_score(scores, mask):
    rows = []
    for row, sees in zip(scores, mask):
        rows.append(row[sees].max() if sees.any() else torch.tensor(0.0))
    return torch.stack(rows)
""",
        "Python's max": """
def best_score(scores, mask):
    best = []
    for row, sees in zip(scores.tolist(), mask.tolist()):
        best.append(max((a for a, seen in zip(row, sees) if seen), default=0.0))
    return torch.tensor(best)
""",
        "lowest number of the type": """
def best_score(scores, mask):
    filled = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
    best, _ = filled.max(dim=-1)
    return best.where(mask.sum(dim=-1) > 0, 0.0)
""",
        "in place, on a copy": """
def best_score(scores, mask):
    scores = scores.clone()
    scores[~mask] = -float("inf")
    best = scores.amax(1)
    best[best == -float("inf")] = 0
    return best
""",
        "nan_to_num": """
def best_score(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).amax(dim=-1).nan_to_num(neginf=0.0)
""",
    },
    "00-read-a-message": {
        "loops": """
def mean_of_real(x, mask):
    out = torch.zeros(x.shape[0], x.shape[2])
    for j in range(len(x)):
        if mask[j].any():
            out[j] = x[j][mask[j]].mean(dim=0)
    return out
""",
        "where and maximum": """
def mean_of_real(x, mask):
    total = torch.where(mask.unsqueeze(-1), x, 0.0).sum(1)
    count = torch.maximum(mask.sum(1), torch.tensor(1))
    return total / count[:, None]
""",
        "the draft, mended on a copy": """
def mean_of_real(x, mask):
    x = x.clone()
    x[~mask] = 0.0
    total = x.sum(dim=1)
    count = mask.sum(dim=1)[:, None]
    return total / count.clamp(min=1)
""",
        "einsum": """
def mean_of_real(x, mask):
    clean = x.masked_fill(~rearrange(mask, "b t -> b t 1"), 0.0)
    share = mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)
    return einsum(clean, share, "b t d_model, b t -> b d_model")
""",
        "nan_to_num before the sum": """
def mean_of_real(x, mask):
    total = (x.nan_to_num() * mask[..., None]).sum(dim=1)
    return total / mask.sum(dim=1, keepdim=True).clamp(min=1)
""",
        "nanmean": """
def mean_of_real(x, mask):
    return x.masked_fill(~mask[..., None], float("nan")).nanmean(dim=1).nan_to_num(nan=0.0)
""",
        "nan_to_num of the quotient, padding filled": """
def mean_of_real(x, mask):
    clean = x.masked_fill(~mask[:, :, None], 0.0)
    return (clean.sum(dim=1) / mask.sum(dim=1, keepdim=True)).nan_to_num(nan=0.0)
""",
    },
}

WRONG = {
    "00-shapes": {
        "keepdim ignored": (_shapes(row_max="(b, t)"), "without keepdim=True"),
        "dim names what stays": (
            _shapes(row_sum="(b, s)", column_mean="(b, t)"),
            "dim= names the one that goes",
        ),
        "summed axis stays as 1": (
            _shapes(row_sum="(b, t, 1)", column_mean="(b, 1, s)"),
            "goes altogether",
        ),
        "inner axis kept": (_shapes(out="(b, t, s)"), "summed away"),
        "out as wide as q": (_shapes(out="(b, t, d_head)"), "the width of q"),
        "an index keeps its axis": (
            _shapes(first_word="(b, 1, d_model)", one_sentence="(1, t, s)"),
            "a single index takes it away",
        ),
        "index of the first axis": (_shapes(first_word="(t, d_model)"), "picks along the second"),
        "the reference of the check": (
            """
def shapes(b, t, s, d_model, d_head):
    return measured(b, t, s, d_model, d_head)
""",
            "the answer uses measured",
        ),
        "scores swapped": (_shapes(scores="(b, s, t)"), "(q) give the rows"),
        "q keeps the width": (_shapes(q="(b, t, d_model)"), "'q'"),
        "batch forgotten": (_shapes(scores="(t, s)", row_sum="(t,)"), "'scores'"),
        "the sizes of the check": (
            _shapes(q="(2, 3, 11)", scores="(2, 3, 5)"),
            "case 2 of 2",
        ),
        "a key missing": (_shapes().replace('"out": (b, t, d_model),', ""), "missing: out"),
    },
    "00-broadcast": {
        "keepdim forgotten": (
            """
def centre(x, gain):
    return (x - x.mean(dim=-1)) * gain[:, None]
""",
            "no keepdim=True",
        ),
        "mean over the words": (
            """
def centre(x, gain):
    return (x - x.mean(dim=1, keepdim=True)) * gain[:, None]
""",
            "mean over the words",
        ),
        "mean over everything": (
            """
def centre(x, gain):
    return (x - x.mean()) * gain[:, None]
""",
            "one mean of the whole block",
        ),
        "mean over the sentence": (
            """
def centre(x, gain):
    return (x - x.mean(dim=(1, 2), keepdim=True)) * gain[:, None]
""",
            "one mean a sentence",
        ),
        "gain along the width": (
            """
def centre(x, gain):
    return (x - x.mean(dim=-1, keepdim=True)) * gain
""",
            "lines up with the last axis",
        ),
        "gain forgotten": (
            """
def centre(x, gain):
    return x - x.mean(dim=-1, keepdim=True)
""",
            "not multiplied by the gain",
        ),
        "not centred": (
            """
def centre(x, gain):
    return x * gain[:, None]
""",
            "no mean was subtracted",
        ),
        "mean after the gain": (
            """
def centre(x, gain):
    scaled = x * gain[:, None]
    return scaled - x.mean(dim=-1, keepdim=True)
""",
            "centre first",
        ),
        "argument changed": (
            """
def centre(x, gain):
    x -= x.mean(dim=-1, keepdim=True)
    return x * gain[:, None]
""",
            "changed its argument",
        ),
        "divided by the gain in between": (
            """
def centre(x, gain):
    gain = gain[:, None]
    return (x - (x * gain).mean(dim=-1, keepdim=True) / gain) * gain
""",
            "are NaN or infinite",
        ),
        "the first word has no gain": (
            """
def centre(x, gain):
    out = x - x.mean(dim=-1, keepdim=True)
    for i in range(1, x.shape[1]):
        out[:, i] *= gain[i]
    return out
""",
            "case 2 of 2",
        ),
        "gain with an axis for the batch": (
            """
def centre(x, gain):
    return (x - x.mean(dim=-1, keepdim=True)) * gain[:, None, None]
""",
            "expected shape",
        ),
        "first sentence only": (
            """
def centre(x, gain):
    out = torch.zeros_like(x)
    out[0] = (x[0] - x[0].mean(dim=-1, keepdim=True)) * gain[:, None]
    return out
""",
            "case 2 of 2",
        ),
    },
    "00-transpose-or-view": {
        "view without transpose": (
            """
def by_sentence(rows, b):
    return rows.reshape(b, -1, rows.shape[1])
""",
            "reshape keeps the reading order",
        ),
        "not swapped": (
            """
def by_sentence(rows, b):
    return rows.reshape(-1, b, rows.shape[1])
""",
            "not swapped yet",
        ),
        "everything transposed": (
            """
def by_sentence(rows, b):
    return rows.mT.reshape(b, -1, rows.shape[1])
""",
            "transposes the whole table",
        ),
        "width before words": (
            """
def by_sentence(rows, b):
    return rows.reshape(b, rows.shape[1], -1).mT
""",
            "width before the words",
        ),
        "einops with the axes in the wrong order": (
            """
def by_sentence(rows, b):
    return rearrange(rows, "(b t) d_model -> b t d_model", b=b)
""",
            "words of different sentences stand together",
        ),
        "einops without a length": (
            """
def by_sentence(rows, b):
    return rearrange(rows, "(t b) d_model -> b t d_model")
""",
            "a merged axis needs a length",
        ),
        "argument changed": (
            """
def by_sentence(rows, b):
    block = rearrange(rows, "(t b) d_model -> b t d_model", b=b).clone()
    rows.zero_()
    return block
""",
            "changed its argument `rows`",
        ),
        "last two axes swapped": (
            """
def by_sentence(rows, b):
    return rows.reshape(b, -1, rows.shape[1]).transpose(1, 2)
""",
            "expected shape",
        ),
        "sentences in reverse": (
            """
def by_sentence(rows, b):
    return rearrange(rows, "(t b) d_model -> b t d_model", b=b).flip(0)
""",
            "by_sentence",
        ),
        "list of blocks": (
            """
def by_sentence(rows, b):
    return [rows[j::b] for j in range(b)]
""",
            "expected a tensor",
        ),
        "two sentences always": (
            """
def by_sentence(rows, b):
    return rows.reshape(-1, 2, rows.shape[1]).transpose(0, 1)
""",
            "case 2 of 2",
        ),
    },
    "00-boolean-mask": {
        "multiplied by the mask": (
            """
def best_score(scores, mask):
    best = (scores * mask).amax(dim=-1)
    return best.masked_fill(~mask.any(dim=-1), 0.0)
""",
            "a 0 in every masked place",
        ),
        "filled with zero": (
            """
def best_score(scores, mask):
    return scores.masked_fill(~mask, 0.0).amax(dim=-1)
""",
            "a 0 in every masked place",
        ),
        "mask inverted": (
            """
def best_score(scores, mask):
    best = scores.masked_fill(mask, float("-inf")).amax(dim=-1)
    return best.masked_fill(mask.all(dim=-1), 0.0)
""",
            "the other way round",
        ),
        "mask ignored": (
            """
def best_score(scores, mask):
    return scores.amax(dim=-1)
""",
            "without the mask",
        ),
        "best of each column": (
            """
def best_score(scores, mask):
    best = scores.masked_fill(~mask, float("-inf")).amax(dim=0)
    return best.masked_fill(~mask.any(dim=0), 0.0)
""",
            "best score of each column",
        ),
        "one best for all": (
            """
def best_score(scores, mask):
    return scores[mask].max()
""",
            "one maximum for the whole table",
        ),
        "place of the best": (
            """
def best_score(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).argmax(dim=-1)
""",
            "argmax",
        ),
        "empty row left at minus infinity": (
            """
def best_score(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).amax(dim=-1)
""",
            "those give 0.0",
        ),
        "filled with -1e9": (
            """
def best_score(scores, mask):
    best = scores.masked_fill(~mask, -1e9).amax(dim=-1)
    return best.masked_fill(~mask.any(dim=-1), 0.0)
""",
            "-1e9 in the masked places",
        ),
        "argument changed": (
            """
def best_score(scores, mask):
    best = scores.masked_fill_(~mask, float("-inf")).amax(dim=-1)
    return best.masked_fill(~mask.any(dim=-1), 0.0)
""",
            "changed its argument",
        ),
        "filled with -1e38": (
            """
def best_score(scores, mask):
    best = scores.masked_fill(~mask, -1e38).amax(dim=-1)
    return best.masked_fill(~mask.any(dim=-1), 0.0)
""",
            "got -1e+38",
        ),
        "filled with -3e37": (
            """
def best_score(scores, mask):
    best = scores.masked_fill(~mask, -3e37).amax(dim=-1)
    return best.masked_fill(~mask.any(dim=-1), 0.0)
""",
            "got -3e+37",
        ),
        "a very low best is taken for none": (
            """
def best_score(scores, mask):
    best = scores.masked_fill(~mask, float("-inf")).amax(dim=-1)
    return best.masked_fill(best < -1e38, 0.0)
""",
            "expected -3.40282e+38",
        ),
        "the lowest float is taken for none": (
            """
def best_score(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    best = scores.masked_fill(~mask, lowest).amax(dim=-1)
    return best.masked_fill(best == lowest, 0.0)
""",
            "expected -3.40282e+38",
        ),
        "integers where nothing may be looked at": (
            """
def best_score(scores, mask):
    best = []
    for row, sees in zip(scores.tolist(), mask.tolist()):
        best.append(max((a for a, seen in zip(row, sees) if seen), default=0))
    return torch.tensor(best)
""",
            "These are integers",
        ),
        "all for any": (
            """
def best_score(scores, mask):
    best = scores.masked_fill(~mask, float("-inf")).amax(dim=-1)
    return best.masked_fill(~mask.all(dim=-1), 0.0)
""",
            "may not look everywhere",
        ),
        "clamped at zero": (
            """
def best_score(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).amax(dim=-1).clamp(min=0)
""",
            "everything below zero",
        ),
        "the pair of max": (
            """
def best_score(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).max(dim=-1)
""",
            "the pair (values, indices)",
        ),
        "axis kept": (
            """
def best_score(scores, mask):
    best = scores.masked_fill(~mask, float("-inf")).amax(dim=-1, keepdim=True)
    return best.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
""",
            "number of axes",
        ),
        "a score of zero is taken for masked": (
            """
def best_score(scores, mask):
    masked = scores * mask
    best = masked.masked_fill(masked == 0, float("-inf")).amax(dim=-1)
    return best.masked_fill(~mask.any(dim=-1), 0.0)
""",
            "got -3",
        ),
        "sum of the allowed": (
            """
def best_score(scores, mask):
    return (scores * mask.float()).sum(dim=-1)
""",
            "best_score",
        ),
    },
    "00-read-a-message": {
        "the draft as it is": (
            """
def mean_of_real(x, mask):
    x[~mask] = 0.0
    total = x.sum(dim=-1)
    return total / mask.sum()
""",
            "expected shape (2, 3)",
        ),
        "one fault mended": (
            """
def mean_of_real(x, mask):
    x[~mask] = 0.0
    total = x.sum(dim=1)
    return total / mask.sum(dim=1, keepdim=True).clamp(min=1)
""",
            "changed its argument",
        ),
        "count of the batch": (
            """
def mean_of_real(x, mask):
    total = x.masked_fill(~mask[..., None], 0.0).sum(dim=1)
    return total / mask.sum()
""",
            "in the whole batch",
        ),
        "count without its axis": (
            """
def mean_of_real(x, mask):
    total = x.masked_fill(~mask[..., None], 0.0).sum(dim=1)
    return total / mask.sum(dim=1)
""",
            "must match",
        ),
        "empty sentence": (
            """
def mean_of_real(x, mask):
    total = x.masked_fill(~mask[..., None], 0.0).sum(dim=1)
    return total / mask.sum(dim=1, keepdim=True)
""",
            "0 divided by 0",
        ),
        "padding averaged": (
            """
def mean_of_real(x, mask):
    return x.mean(dim=1)
""",
            "padding included",
        ),
        "divided by all positions": (
            """
def mean_of_real(x, mask):
    return x.masked_fill(~mask[..., None], 0.0).mean(dim=1)
""",
            "divides by all t positions",
        ),
        "mask inverted": (
            """
def mean_of_real(x, mask):
    total = x.masked_fill(mask[..., None], 0.0).sum(dim=1)
    return total / (~mask).sum(dim=1, keepdim=True).clamp(min=1)
""",
            "the mean of the padding",
        ),
        "padding multiplied": (
            """
def mean_of_real(x, mask):
    total = (x * mask[..., None]).sum(dim=1)
    return total / mask.sum(dim=1, keepdim=True).clamp(min=1)
""",
            "0 times NaN is NaN",
        ),
        "sum only": (
            """
def mean_of_real(x, mask):
    return x.masked_fill(~mask[..., None], 0.0).sum(dim=1)
""",
            "not yet their mean",
        ),
        "one added to the count": (
            """
def mean_of_real(x, mask):
    total = x.masked_fill(~mask[..., None], 0.0).sum(dim=1)
    return total / (mask.sum(dim=1, keepdim=True) + 1)
""",
            "one more than the number",
        ),
        "a little added to the count": (
            """
def mean_of_real(x, mask):
    total = x.masked_fill(~mask[..., None], 0.0).sum(dim=1)
    return total / (mask.sum(dim=1, keepdim=True) + 1e-4)
""",
            "a little more than the number",
        ),
        "words of zeros not counted": (
            """
def mean_of_real(x, mask):
    x = x.masked_fill(~mask[..., None], 0.0)
    count = (x != 0).any(dim=-1).sum(dim=1, keepdim=True)
    return x.sum(dim=1) / count.clamp(min=1)
""",
            "a number other than 0",
        ),
        "numbers of zero not counted": (
            """
def mean_of_real(x, mask):
    x = x.masked_fill(~mask[..., None], 0.0)
    return x.sum(dim=1) / (x != 0).sum(dim=1).clamp(min=1)
""",
            None,
            "too odd for a name, and not to be taken for a count of words; the message shows where",
        ),
        "count of the first sentence": (
            """
def mean_of_real(x, mask):
    return x.masked_fill(~mask[..., None], 0.0).sum(dim=1) / mask[0].sum().clamp(min=1)
""",
            None,
            "too odd for a name, and not to be taken for a count of all positions",
        ),
        "largest count": (
            """
def mean_of_real(x, mask):
    total = x.masked_fill(~mask[..., None], 0.0).sum(dim=1)
    return total / mask.sum(dim=1).max().clamp(min=1)
""",
            None,
            "too odd for a name, and not to be taken for a count of all positions",
        ),
        "each word once": (
            """
def mean_of_real(x, mask):
    out = torch.zeros(x.shape[0], x.shape[2])
    for j in range(len(x)):
        if mask[j].any():
            out[j] = x[j][mask[j]].unique(dim=0).mean(dim=0)
    return out
""",
            "(case 2 of 2)",
        ),
        "real words first": (
            """
def mean_of_real(x, mask):
    out = torch.zeros(x.shape[0], x.shape[2])
    for j, count in enumerate(mask.sum(dim=1)):
        if count:
            out[j] = x[j, :count].mean(dim=0)
    return out
""",
            "three sentences",
        ),
    },
}
