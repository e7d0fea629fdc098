"""Memory for the keys and values of tokens that were read before."""

from plainformer.cache.contiguous import ContiguousCache
from plainformer.cache.paged import PagedCache, PagePool
from plainformer.cache.rolling import RollingCache

__all__ = ["ContiguousCache", "PagePool", "PagedCache", "RollingCache"]
