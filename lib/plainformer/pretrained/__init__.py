"""Models that others trained."""

from plainformer.pretrained.encoder import Encoder

__all__ = ["Encoder"]
