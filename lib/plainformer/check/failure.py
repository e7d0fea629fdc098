"""The one exception that checks raise, and how it reads."""

from plainformer.messages import CRASHES, MISTAKES, RULES, UNTOLD, UNTOLD_STEP


class CheckFailed(AssertionError):
    """A check that did not pass.

    `rule` is the rung of the ladder (a key of `messages.RULES`), `got` and `want` what was compared
    there, `mistake` the key of a known mistake (in `messages.MISTAKES`) or None.
    """

    def __init__(self, rule: str, what: str, headline: str, rows: list[str], got=None, want=None):
        super().__init__(headline)
        self.what = what
        self.rule, self.got, self.want = rule, got, want
        self.headline, self.rows = headline, rows
        self.step = RULES[rule][1]
        self.mistake: str | None = None

    def untold(self) -> None:
        """Take the right values out of the message, where a number to work out is judged."""
        if self.rule in UNTOLD:
            self.headline = UNTOLD[self.rule].format(what=self.what, got=self.got)
        if self.rule in UNTOLD or self.rule == "values":  # its headline tells a place, no value
            self.step = UNTOLD_STEP
            self.rows = [row for row in self.rows if not row.startswith("expected ")]

    def __str__(self) -> str:
        """What is wrong, where, after which call, and the cause if it is known, or a next step."""
        last = MISTAKES[self.mistake] if self.mistake else f"Next: {self.step}"
        return "\n  ".join([self.headline, *self.rows, last])

    def _render_traceback_(self) -> list[str]:
        """What IPython prints: the message alone, since a traceback into this file helps nobody."""
        return [f"Not yet. {self}"]


def fail(rule: str, what: str, *, cause: BaseException | None = None, rows=(), **values):
    """Raise CheckFailed with the catalogue's text for `rule`, filled with `what` and `values`."""
    headline = RULES[rule][0].format(what=what, **values)
    failed = CheckFailed(rule, what, headline, list(rows), values.get("got"), values.get("want"))
    if rule == "crashed":
        text = f"{type(cause).__name__}: {cause}"
        failed.step = next((step for words, step in CRASHES.items() if words in text), failed.step)
    raise failed from cause
