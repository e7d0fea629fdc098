"""Pictures of what attention does: functions that take and return matplotlib Axes, and widgets."""

from plainformer.figures.bars import softmax_temperature
from plainformer.figures.curves import curve_with_band
from plainformer.figures.heatmaps import attention_map
from plainformer.figures.masks import mask_grid
from plainformer.figures.widgets import AttentionExplorer

__all__ = [
    "AttentionExplorer",
    "attention_map",
    "curve_with_band",
    "mask_grid",
    "softmax_temperature",
]
