"""How a model learns."""

from plainformer.training.loop import train

__all__ = ["train"]
