"""Frequencies for reading further than a rotary model was trained to.

Each changes the frequencies only; none promises that the model then reads well.
"""

import math

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from plainformer.positions.sinusoidal import frequencies


def interpolated(freqs: Float[Tensor, " pairs"], factor: float | int) -> Float[Tensor, " pairs"]:
    """Position interpolation: turn everything `factor` times slower.

    The same as dividing the positions: position `factor * p` then looks as p did in training.
    Source: Chen et al. 2023 (arXiv:2306.15595).
    Raises ValueError when `factor` is below 1.
    """
    return freqs / _at_least_one(factor)


def ntk_base(d_head: int, base: float | int = 10_000.0, *, factor: float | int) -> float:
    r"""NTK-aware scaling: a base that slows the last pair by `factor` and leaves the first alone.

    $$ b' = b \cdot s^{d / (d-2)} $$

    The pairs between are slowed by less. The dynamic variant calls it anew for each length, with
    the factor $s L / L_0 - (s - 1)$ once L exceeds the trained length $L_0$.
    Source: bloc97 2023, as described in Peng et al. 2023 (arXiv:2309.00071).
    Paper to code: d is `d_head`, b is `base`, s is `factor`.
    Raises ValueError when `factor` is below 1 or there is but one pair.
    """
    if d_head < 4 or d_head % 2:
        raise ValueError(
            f"d_head must be even and at least 4, got {d_head}: a single pair is first and last "
            f"at once, so no base slows the one and keeps the other"
        )
    return base * _at_least_one(factor) ** (d_head / (d_head - 2))


def yarn_frequencies(
    d_head: int,
    base: float | int = 10_000.0,
    *,
    factor: float | int,
    original_length: int,
    beta_fast: float | int = 32.0,
    beta_slow: float | int = 1.0,
) -> Float64[Tensor, " pairs"]:
    """YaRN: keep the pairs that turn often in training, interpolate those that hardly turn.

    Pairs with `beta_fast` turns and more within `original_length` keep their frequency, those with
    `beta_slow` and fewer are slowed by `factor`, and between them the change is gradual. As in the
    authors' code the ramp is linear in the number of the pair and its ends are rounded outwards;
    the paper's is linear in the number of turns.
    Source: Peng et al. 2023 (arXiv:2309.00071), NTK-by-parts.
    Units: `original_length` in tokens, `beta_fast` and `beta_slow` in whole turns.
    Raises ValueError when `factor` is below 1, when the betas are not in order, or when not even
    the fastest pair makes `beta_slow` turns.
    """
    freqs = frequencies(d_head, base)
    _at_least_one(factor)
    if not 0 < beta_slow < beta_fast:
        raise ValueError(
            f"the turns must satisfy 0 < beta_slow < beta_fast, got beta_slow={beta_slow} and "
            f"beta_fast={beta_fast}; YaRN uses 1 and 32"
        )
    if original_length <= 2 * math.pi * beta_slow:
        raise ValueError(
            f"original_length must let the first pair make more than beta_slow={beta_slow} turns "
            f"of 2 pi positions, got {original_length}; use interpolated() for so short a training"
        )

    def pair_that_makes(turns: float) -> float:
        return d_head * math.log(original_length / (2 * math.pi * turns)) / (2 * math.log(base))

    low = max(math.floor(pair_that_makes(beta_fast)), 0)
    high = min(math.ceil(pair_that_makes(beta_slow)), d_head - 1)
    pair = torch.arange(d_head // 2, dtype=torch.float64)
    slowed = ((pair - low) / max(high - low, 0.001)).clamp(0, 1)
    return (1 - slowed) * freqs + slowed * freqs / factor


def yarn_attention_factor(factor: float | int) -> float:
    r"""What YaRN multiplies queries and keys by: the scores grow by its square.

    $$ \sqrt{1/t} = 0.1 \ln s + 1 $$

    Source: Peng et al. 2023 (arXiv:2309.00071). Paper to code: s is `factor`.
    Raises ValueError when `factor` is below 1.
    """
    return 0.1 * math.log(_at_least_one(factor)) + 1


def llama3_frequencies(
    d_head: int,
    base: float | int = 500_000.0,
    *,
    factor: float | int = 8.0,
    original_length: int = 8192,
    beta_fast: float | int = 4.0,
    beta_slow: float | int = 1.0,
) -> Float64[Tensor, " pairs"]:
    """Llama 3.1's frequencies: as YaRN's, but the ramp is linear in the number of turns.

    Source: the released code of Llama 3.1, where the betas are `high_freq_factor` and
    `low_freq_factor`.
    Raises ValueError when `factor` is below 1 or the betas are not in order.
    """
    freqs = frequencies(d_head, base)
    _at_least_one(factor)
    if not 0 < beta_slow < beta_fast or original_length < 1:
        raise ValueError(
            f"the turns must satisfy 0 < beta_slow < beta_fast and original_length be at least 1, "
            f"got beta_slow={beta_slow}, beta_fast={beta_fast} and {original_length}; "
            f"Llama 3.1 uses 1, 4 and 8192"
        )
    turns = original_length * freqs / (2 * math.pi)
    kept = ((turns - beta_slow) / (beta_fast - beta_slow)).clamp(0, 1)
    return kept * freqs + (1 - kept) * freqs / factor


def _at_least_one(factor: float | int) -> float | int:
    if not factor >= 1:
        raise ValueError(
            f"factor must be at least 1, got {factor}: it is the new length over the old one; "
            f"for shorter texts nothing needs to change"
        )
    return factor
