"""How a model learns."""

from plainformer.training.averaging import averaged
from plainformer.training.loop import train
from plainformer.training.schedules import warmup_inverse_sqrt

__all__ = ["averaged", "train", "warmup_inverse_sqrt"]
