"""Sentences that a marker writes again and again, under short keys: `#no-number` in a sheet.

They stand in comments.toml in the class folder, for all written answers or for one:

    [all]
    no-number = "Give a number that you measured or read in the chapter."
    [02-what-the-scale-does-not-do]
    unclear-shape = "Which axis does the softmax run over?"

Each bold point of an exercise's rubric is a key already, `#what-it-does`, and says what is missing.
formgrader knows nothing of keys; there the sentences have to be written out.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping

from autograde.chapters import UsageError
from autograde.plan import ClassFolder

NAME = "comments.toml"
KEY = re.compile(r"(?<!\S)#([A-Za-z][\w-]*)")


class BadComments(UsageError):
    """The comments.toml of a class cannot be used; the message says where and why."""


def comment_bank(folder: ClassFolder, exercise: str, rubric: Mapping[str, str]) -> dict[str, str]:
    """Key -> sentence for one written answer: of its rubric, of all, its own; the last counts."""
    said = _said(folder)
    from_rubric = {key: f"Missing, or not clear yet: {point}." for key, point in rubric.items()}
    return from_rubric | said.get("all", {}) | said.get(exercise, {})


def expanded(comment: str, bank: Mapping[str, str]) -> str:
    """The comment with its keys written out. Raises ValueError for a key that there is not."""

    def sentence(found: re.Match) -> str:
        key = found[1].rstrip("-")
        if key in bank:
            return bank[key] + found[1][len(key) :]
        near = difflib.get_close_matches(key, bank, n=3)
        known = " or ".join(f"#{one}" for one in near or sorted(bank)) or f"none, see {NAME}"
        raise ValueError(f"there is no comment #{key}; {'nearest' if near else 'known'}: {known}")

    return KEY.sub(sentence, comment)


def _said(folder: ClassFolder) -> dict[str, dict[str, str]]:
    path = folder.root / NAME
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadComments(f"{path} cannot be read as TOML: {error}") from None
    for where, comments in said.items():
        if not isinstance(comments, dict):
            raise BadComments(f"{path}: {where} stands under no [all] or [EXERCISE]; put it there")
        for key, sentence in comments.items():
            if not isinstance(sentence, str) or not KEY.fullmatch(f"#{key}"):
                raise BadComments(
                    f"{path}: [{where}] {key}: a key is a letter, then letters, digits, - and _, "
                    'and its sentence stands in quotes, such as no-number = "Give a number."'
                )
    return said
