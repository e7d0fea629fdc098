"""Ways for tokens to look at each other."""

from plainformer.attention.dot_product import attention_weights, dot_product_attention

__all__ = ["attention_weights", "dot_product_attention"]
