"""Ways for tokens to look at each other."""

from plainformer.attention.dot_product import attention_weights, dot_product_attention
from plainformer.attention.grouped_query import (
    GroupedQueryAttention,
    grouped_query_attention,
    mha_to_gqa,
    pool_heads,
)
from plainformer.attention.latent import LatentAttention
from plainformer.attention.multi_head import MultiHeadAttention

__all__ = [
    "GroupedQueryAttention",
    "LatentAttention",
    "MultiHeadAttention",
    "attention_weights",
    "dot_product_attention",
    "grouped_query_attention",
    "mha_to_gqa",
    "pool_heads",
]
