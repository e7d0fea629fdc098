"""Ways to cut text into symbols and number them."""

from plainformer.tokenizers.chars import CharTokenizer

__all__ = ["CharTokenizer"]
