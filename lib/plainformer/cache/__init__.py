"""Memory for the keys and values of tokens that were read before."""

from plainformer.cache.contiguous import ContiguousCache

__all__ = ["ContiguousCache"]
