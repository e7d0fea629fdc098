"""Measures of what attention, gradients and memory do."""

from plainformer.inspection.entropy import effective_keys, entropy
from plainformer.inspection.flops import BlockFlops, block_flops
from plainformer.inspection.gradients import gradient_norms, rms_by_depth
from plainformer.inspection.links import strongest_links
from plainformer.inspection.maps import AttentionMaps
from plainformer.inspection.memory import MemoryCount

__all__ = [
    "AttentionMaps",
    "BlockFlops",
    "MemoryCount",
    "block_flops",
    "effective_keys",
    "entropy",
    "gradient_norms",
    "rms_by_depth",
    "strongest_links",
]
