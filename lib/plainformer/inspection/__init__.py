"""Measures of what attention does."""

from plainformer.inspection.entropy import effective_keys, entropy
from plainformer.inspection.links import strongest_links

__all__ = ["effective_keys", "entropy", "strongest_links"]
