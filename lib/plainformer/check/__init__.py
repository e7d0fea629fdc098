"""Comparisons that speak: every check passes silently or says what is wrong, where, and what next.

A check climbs one ladder and stops at the first rung that fails: is it written, does it run, does
it return something, of the right type, rank, shape, dtype and device, finite, with its arguments
untouched, with the right values. A known mistake is named only on evidence: the answer equals the
mistake's result in every case, that result is wrong in at least two, and no other known mistake
explains it as well. The texts live in `plainformer.messages`.
"""

from plainformer.check.compare import calls, close, equal, raises, shape, unchanged
from plainformer.check.failure import CheckFailed
from plainformer.check.quizzes import quiz, seal

__all__ = [
    "CheckFailed",
    "calls",
    "close",
    "equal",
    "quiz",
    "raises",
    "seal",
    "shape",
    "unchanged",
]
