"""Measures of what attention does."""

from plainformer.inspection.entropy import effective_keys, entropy
from plainformer.inspection.links import strongest_links
from plainformer.inspection.memory import MemoryCount

__all__ = ["MemoryCount", "effective_keys", "entropy", "strongest_links"]
