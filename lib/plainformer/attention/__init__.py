"""Ways for tokens to look at each other."""

from plainformer.attention.dot_product import attention_weights, dot_product_attention
from plainformer.attention.grouped_query import (
    GroupedQueryAttention,
    grouped_query_attention,
    mha_to_gqa,
    pool_heads,
)
from plainformer.attention.latent import LatentAttention
from plainformer.attention.linear import (
    LinearState,
    causal_linear_attention,
    elu_features,
    linear_attention,
    linear_attention_step,
    linear_state,
)
from plainformer.attention.local import in_blocks, local_attention
from plainformer.attention.longformer import LongformerAttention
from plainformer.attention.multi_head import MultiHeadAttention

__all__ = [
    "GroupedQueryAttention",
    "LatentAttention",
    "LinearState",
    "LongformerAttention",
    "MultiHeadAttention",
    "attention_weights",
    "causal_linear_attention",
    "dot_product_attention",
    "elu_features",
    "grouped_query_attention",
    "in_blocks",
    "linear_attention",
    "linear_attention_step",
    "linear_state",
    "local_attention",
    "mha_to_gqa",
    "pool_heads",
]
