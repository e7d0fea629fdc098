"""Flash attention: exact attention that never makes the matrix of all scores."""

from plainformer.flash.attention import flash_attention
from plainformer.flash.launch import Blocks, blocks_for, triton_backward, triton_forward
from plainformer.flash.online_softmax import RunningSoftmax, merge_parts, split_keys_attention
from plainformer.flash.semantics import (
    as_window,
    check_arguments,
    keep,
    kept_mask,
    key_range,
    reference_attention,
)
from plainformer.flash.tiled import key_tiles, tiled_backward, tiled_forward

__all__ = [
    "Blocks",
    "RunningSoftmax",
    "as_window",
    "blocks_for",
    "check_arguments",
    "flash_attention",
    "keep",
    "kept_mask",
    "key_range",
    "key_tiles",
    "merge_parts",
    "reference_attention",
    "split_keys_attention",
    "tiled_backward",
    "tiled_forward",
    "triton_backward",
    "triton_forward",
]
