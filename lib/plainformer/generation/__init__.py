"""Ways to write with a model: which symbol to take when it says how likely each is."""

from plainformer.generation.beam import Hypothesis, beam_search
from plainformer.generation.greedy import greedy

__all__ = ["Hypothesis", "beam_search", "greedy"]
