"""What a learner is told about a test that failed, according to the part of it that did.

Of a hidden part only what is known beforehand is told: the named mistake, the rule that is broken,
the kind of a Python error and the line of the answer where it arose. Its message holds more: what
was called and what was expected, and the text of an error may quote an input.
"""

import builtins
import re

from autograde.source import Exercise
from autograde.source_cells import Cell
from plainformer.messages import MISTAKES

# Rule of plainformer.messages -> what is wrong, without a value of the test.
BROKEN = {
    "undefined": "there was no function to call",
    "not-written": "this is not written yet",
    "crashed": "a call stopped with an error",
    "returned-nothing": "a call gave None: did a path forget to return?",
    "type": "what came back is of another kind than the docstring says",
    "keys": "the dictionary has other keys than the docstring says",
    "length": "the number of items is another one than asked for",
    "rank": "the number of axes is another one than asked for",
    "shape": "the shape is another one than asked for",
    "dtype": "the numbers are of another kind (whole, float, true or false) than asked for",
    "device": "the tensor is on another device than the arguments",
    "not-finite": "there were NaN or infinite numbers where there should be none",
    "modified": "the call changed one of its arguments",
    "values": "the shape is right and some numbers are not",
    "number": "the number is not right",
    "no-error": "an error was asked for, and the call went through",
    "wrong-error": "another kind of error was asked for",
    "error-words": "the text of the error does not say what was asked for",
    "quiz-form": "the answers are not in the form that was asked for",
    "quiz-sealed": "not every answer is right",
    "quiz-score": "too few answers are right",
}
ERRORS = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception)
}
VISIBLE = "All of this check is visible: you can run it yourself in your notebook."
VISIBLE_PART = (
    "The visible part failed: you can run it yourself in your notebook. "
    "The hidden part was not reached."
)
HIDDEN_PART = "The visible part passed; the hidden part, with other numbers, did not."
HIDDEN = "This check is hidden: it does not stand in your notebook."
UNKNOWN = "Run the visible part of this check in your notebook: it may tell you more."


def lines_of(cell: Cell, verdict: dict, exercise: Exercise) -> tuple[list[str], str]:
    """Sentences about a test that failed, and a message to quote as it stands, or nothing."""
    part = verdict.get("part")
    message = _ours_alone(verdict["message"].strip(), exercise)
    if part == "before":
        return [], message
    if part == "visible":
        where = VISIBLE if cell.visible_lines is None else VISIBLE_PART
        mistake = MISTAKES.get(verdict["mistake"], "")
        if mistake and message.endswith(mistake):
            return [mistake, where], message.removesuffix(mistake).rstrip()
        return [where], message
    if part == "hidden":
        seen = cell.visible_text.strip()
        return [HIDDEN_PART if seen else HIDDEN, *_in_general(verdict)], ""
    return [UNKNOWN, *_in_general(verdict)], ""


def _in_general(verdict: dict) -> list[str]:
    """The rule and the mistake in words of ours alone."""
    told = []
    if error := _error(verdict):
        told = [f"A call stopped with {error}."]
    elif broken := BROKEN.get(verdict["rule"]):
        told = [f"What is wrong: {broken}."]
    if mistake := MISTAKES.get(verdict["mistake"]):
        told.append(mistake)
    return told


def _error(verdict: dict) -> str | None:
    """The kind of the Python error, and the line of the learner's code: never its text."""
    if verdict["state"] != "error" and verdict["rule"] != "crashed":
        return None
    message = verdict["message"]
    before = "^" if verdict["state"] == "error" else "the call stopped with "
    kind = re.search(rf"{before}(\w+)\b", message)
    name = kind[1] if kind and kind[1] in ERRORS else "an error"
    line = re.search(r"^ +in line (\d{1,3}) of (?!<added)", message, re.MULTILINE)
    return f"{name} in line {line[1]} of your code" if line else name


def _ours_alone(message: str, exercise: Exercise) -> str:
    """A message without the line that quotes a test."""
    tests = "|".join(re.escape(test.id) for test in exercise.tests)
    return re.sub(rf"\n *in line \d+ of <(?:check )?(?:{tests})>:.*", "", message)
