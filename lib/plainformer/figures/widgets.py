"""Pictures that answer when touched: elements for the site, with a table inside for elsewhere."""

import json
from html import escape

from jaxtyping import Float
from torch import Tensor

MOST_TOKENS = 20  # more do not fit a phone, nor an eye


class AttentionExplorer:
    """Attention weights to explore: choose a query, see what it looks at, head by head.

    As the last value of a notebook cell it becomes one custom element,

        <attention-explorer data-json="{...}"> table </attention-explorer>

    which `_static/attention-explorer.js` brings to life on the site. Wherever that script does not
    run (JupyterLab, print, no JavaScript), the table inside is what one sees. `data-json` holds
    an object, weights rounded to 4 decimals; row = query, column = key, in the order of `tokens`:

        {"tokens": ["the", "law"], "weights": [[0.9, 0.1], [0.4, 0.6]], "caption": "one head"}
        {"tokens": [...], "heads": [{"name": "head 1", "weights": [...]}, ...], "caption": ""}

    The first form when `weights` has two axes, the second when it has three (one `names` a head).
    `caption` is plain text and may be empty. `start` = (head, query), counted from 0, is what is
    shown first: the keys "head" and "query" of the object. Raises ValueError above 20 tokens, or
    when the sizes do not fit together.
    """

    def __init__(
        self,
        weights: Float[Tensor, "t t"] | Float[Tensor, "h t t"],
        tokens: list[str],
        names: list[str] | None = None,
        caption: str = "",
        start: tuple[int, int] | None = None,
    ):
        if len(tokens) > MOST_TOKENS:
            raise ValueError(
                f"the explorer shows at most {MOST_TOKENS} tokens, got {len(tokens)}; shorten the "
                f"text, or draw it with attention_map"
            )
        if weights.shape[-2:] != (len(tokens), len(tokens)):
            raise ValueError(
                f"weights has shape {tuple(weights.shape)}, but there are {len(tokens)} tokens; "
                f"the last two axes must both be {len(tokens)}"
            )
        self.tokens, self.caption = tokens, caption
        self.weights = [
            [[round(weight, 4) for weight in row] for row in head]
            for head in weights.detach().cpu().double().reshape(-1, *weights.shape[-2:]).tolist()
        ]
        n_heads = len(self.weights)
        self.several = weights.ndim == 3
        self.names = names or [f"head {i}" for i in range(n_heads)]
        if len(self.names) != n_heads:
            raise ValueError(
                f"weights has {n_heads} heads but there are {len(self.names)} names; name each head"
            )
        if start and not (0 <= start[0] < n_heads and 0 <= start[1] < len(tokens)):
            raise ValueError(
                f"start is (head, query), below ({n_heads}, {len(tokens)}), got {start}"
            )
        self.start = start

    @property
    def data(self) -> dict:
        """What the script on the page reads."""
        if not self.several:
            shown = {"weights": self.weights[0]}
        else:
            pairs = zip(self.names, self.weights, strict=True)
            shown = {"heads": [{"name": name, "weights": weights} for name, weights in pairs]}
        first = dict(zip(("head", "query"), self.start, strict=True)) if self.start else {}
        return {"tokens": self.tokens, **shown, **first, "caption": self.caption}

    def __repr__(self) -> str:
        return f"AttentionExplorer({' '.join(self.tokens)!r}, {len(self.weights)} head(s))"

    def _repr_html_(self) -> str:
        # json first, then HTML: every quote and angle bracket of a token arrives as text.
        data = escape(json.dumps(self.data, allow_nan=False), quote=True)
        return f'<attention-explorer data-json="{data}">{self._table()}</attention-explorer>'

    def _table(self) -> str:
        """One head: every weight. Several: what each query looks at most in each head."""
        if self.several:
            columns, note = self.names, "for each query and head, the key with the most weight"
            rows = zip(*(self._strongest(head) for head in self.weights), strict=True)
        else:
            columns, note = self.tokens, "one row per query, one column per key"
            rows = ([f"{weight:.2f}" for weight in row] for row in self.weights[0])
        caption = f"{self.caption} ({note})" if self.caption else f"Attention weights: {note}"
        header = "<td></td>" + "".join(_cell("th", column, "col") for column in columns)
        body = "".join(
            f"<tr>{_cell('th', token, 'row')}{''.join(_cell('td', cell) for cell in cells)}</tr>"
            for token, cells in zip(self.tokens, rows, strict=True)
        )
        return (
            f"<table>{_cell('caption', caption)}"
            f"<thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
        )

    def _strongest(self, head: list[list[float]]) -> list[str]:
        best = (max(range(len(row)), key=row.__getitem__) for row in head)
        return [f"{self.tokens[j]} {row[j]:.2f}" for row, j in zip(head, best, strict=True)]


def _cell(tag: str, text: str, scope: str = "") -> str:
    attribute = f' scope="{scope}"' if scope else ""
    return f"<{tag}{attribute}>{escape(text)}</{tag}>"
