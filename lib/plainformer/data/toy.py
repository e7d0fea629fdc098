"""Small tasks with rules that a reader can check by eye."""

import torch
from jaxtyping import Int
from torch import Tensor

START = 0  # stands where the decoder has no previous symbol yet; symbols count from 1
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def reversal(
    b: int, length: int, generator: torch.Generator, n_symbols: int = len(LETTERS)
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b t"], Int[Tensor, "b t"]]:
    """Draw `b` random strings of one length; give them, what the decoder is fed, and the targets.

    The third is the first read backwards; the second is the third, one step later, behind START.
    Symbols are drawn alike and independently, so nothing but the source tells the target.
    >>> source, shifted, target = reversal(1, 3, torch.Generator().manual_seed(0))
    >>> as_text(source[0]), as_text(shifted[0]), as_text(target[0])
    ('qpb', '.bp', 'bpq')
    """
    if b < 1 or length < 1 or not 1 <= n_symbols <= len(LETTERS):
        raise ValueError(
            f"b and length must be at least 1 and n_symbols lie in 1..{len(LETTERS)}, "
            f"got b={b}, length={length} and n_symbols={n_symbols}"
        )
    source = torch.randint(1, n_symbols + 1, (b, length), generator=generator)
    target = source.flip(1)
    shifted = torch.cat([torch.full((b, 1), START), target[:, :-1]], dim=1)
    return source, shifted, target


def as_ids(text: str) -> Int[Tensor, " length"]:
    """The ids of small letters, a = 1.

    >>> as_ids("bad").tolist()
    [2, 1, 4]
    """
    strange = sorted(set(text) - set(LETTERS))
    if strange:
        raise ValueError(f"text must hold small letters a-z only, got {strange} in {text!r}")
    return torch.tensor([LETTERS.index(letter) + 1 for letter in text], dtype=torch.long)


def as_text(ids: Int[Tensor, " length"]) -> str:
    """The letters of ids; START shows as a dot."""
    return "".join("." if id == START else LETTERS[id - 1] for id in ids.tolist())
