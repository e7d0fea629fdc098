"""Sines and cosines that say where a token stands, and the rotation that moves them along."""

import torch
from jaxtyping import Float, Float64, Real
from torch import Tensor


def frequencies(width: int, base: float | int = 10_000.0) -> Float64[Tensor, " pairs"]:
    r"""How far each pair of numbers turns from one position to the next, in radians.

    $$ \theta_i = b^{-2i/d}, \qquad i = 0, \dots, d/2 - 1 $$

    The first pair turns by one radian; the last is slower by almost the whole of `base`.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sec. 3.5; Su et al. 2021 (arXiv:2104.09864).
    Paper to code: d is `width`, b (10000 in both) is `base`.
    Raises ValueError when `width` is odd or below 2, or when `base` is not above 1.
    >>> frequencies(4)
    tensor([1.0000, 0.0100], dtype=torch.float64)
    """
    if width < 2 or width % 2:
        raise ValueError(
            f"width must be even and at least 2, got {width}: each sine needs its cosine; "
            f"the nearest width that works is {max(2, width + width % 2)}"
        )
    if not base > 1:
        raise ValueError(
            f"base must be above 1, got {base}: then every pair turns slower than the one before; "
            f"10000 is the usual choice"
        )
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


def angles(
    positions: Real[Tensor, "*any"], frequencies: Float[Tensor, " pairs"]
) -> Float[Tensor, "*any pairs"]:
    """How far each pair has turned at each position, in radians.

    In float64: in float32 an angle near 100,000 is off by up to 0.004, and so is its sine.
    """
    exact = torch.float32 if positions.device.type == "mps" else torch.float64  # mps has no float64
    return positions[..., None].to(exact) * frequencies.to(positions.device, exact)


def sinusoidal_table(
    positions: Real[Tensor, "*any"],
    d_model: int,
    *,
    base: float | int = 10_000.0,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "*any d_model"]:
    r"""One vector for each position: a sine in every even place, its cosine in the next.

    $$ PE_{p, 2i} = \sin(p\, \theta_i), \qquad PE_{p, 2i+1} = \cos(p\, \theta_i) $$

    Any positions will do: from 0 or not, in any order, negative, between whole numbers.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sec. 3.5.
    Raises ValueError as `frequencies` does, and when `dtype` can hold no fractions.
    >>> sinusoidal_table(torch.tensor([0, 1]), 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    angle = angles(positions, frequencies(d_model, base))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2).to(_fractions(dtype))


def shift_rotation(
    shift: float | int,
    d_model: int,
    *,
    base: float | int = 10_000.0,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "d_model d_model"]:
    r"""The one matrix that moves every position vector along by `shift`, wherever it starts.

    $$ PE_{p+k} = R_k\, PE_p $$

    It holds one block for each pair, with $c = \cos k\theta_i$ and $s = \sin k\theta_i$:

    $$ \begin{pmatrix} c & s \\ -s & c \end{pmatrix} $$

    Each pair turns clockwise, since the sine comes first. A table holds its vectors in rows, so
    there it is `table @ shift_rotation(k, d_model).T`.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sec. 3.5, which names the linear map only.
    Paper to code: k is `shift`.
    """
    angle = shift * frequencies(d_model, base)
    sin, cos = angle.sin(), angle.cos()
    blocks = torch.stack([cos, sin, -sin, cos], dim=-1).reshape(-1, 2, 2)
    return torch.block_diag(*blocks).to(_fractions(dtype))


def _fractions(dtype: torch.dtype | None) -> torch.dtype:
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point:
        raise ValueError(
            f"dtype must hold fractions, got {dtype}: sines lie between -1 and 1; "
            f"use torch.float32 or torch.float64"
        )
    return dtype
