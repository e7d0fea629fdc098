"""Ways to tell a model where its tokens stand."""

from plainformer.positions.alibi import alibi_bias, alibi_slopes
from plainformer.positions.buckets import (
    bidirectional_buckets,
    causal_buckets,
    relative_positions,
)
from plainformer.positions.relative_bias import RelativeBias, RelativeKeys
from plainformer.positions.rotary import (
    Rotary,
    rotate_half_split,
    rotate_interleaved,
    rows_to_half_split,
    rows_to_interleaved,
    to_half_split,
    to_interleaved,
)
from plainformer.positions.rotary_scaling import (
    interpolated,
    llama3_frequencies,
    ntk_base,
    yarn_attention_factor,
    yarn_frequencies,
)
from plainformer.positions.sinusoidal import (
    angles,
    frequencies,
    shift_rotation,
    sinusoidal_table,
)

__all__ = [
    "RelativeBias",
    "RelativeKeys",
    "Rotary",
    "alibi_bias",
    "alibi_slopes",
    "angles",
    "bidirectional_buckets",
    "causal_buckets",
    "frequencies",
    "interpolated",
    "llama3_frequencies",
    "ntk_base",
    "relative_positions",
    "rotate_half_split",
    "rotate_interleaved",
    "rows_to_half_split",
    "rows_to_interleaved",
    "shift_rotation",
    "sinusoidal_table",
    "to_half_split",
    "to_interleaved",
    "yarn_attention_factor",
    "yarn_frequencies",
]
