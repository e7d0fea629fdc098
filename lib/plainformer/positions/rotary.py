"""Rotary positions: turn queries and keys by an angle that grows with their position.

Two layouts are in use. Interleaved: numbers 0 and 1 are a pair, 2 and 3, and so on. Half-split:
number i and number i + d_head / 2 are a pair. A checkpoint made for one is wrong in the other
until the rows of its query and key projections are put in the other order.
"""

from collections.abc import Callable

import torch
from einops import rearrange
from jaxtyping import Float, Real
from torch import Tensor

from plainformer.contracts import require_multiple
from plainformer.positions.sinusoidal import angles


def rotate_interleaved(
    x: Float[Tensor, "*batch t d_head"],
    positions: Real[Tensor, "*#batch t"],
    frequencies: Float[Tensor, " pairs"],
    attention_factor: float | int = 1.0,
) -> Float[Tensor, "*batch t d_head"]:
    r"""Turn the neighbours $x_{2i}, x_{2i+1}$ of a query or a key by position times frequency.

    $$ x_{2i}' = x_{2i} \cos m\theta_i - x_{2i+1} \sin m\theta_i $$
    $$ x_{2i+1}' = x_{2i} \sin m\theta_i + x_{2i+1} \cos m\theta_i $$

    For queries and keys, never for values: $(R_m q) \cdot (R_n k)$ depends on n - m alone.
    With fewer frequencies than `d_head / 2`, the first numbers turn and the rest stay as they are.
    Positions that differ by row need an axis for the heads: `positions[:, None]`.
    Source: Su et al. 2021 (arXiv:2104.09864), sec. 3.2.2; `attention_factor`, which multiplies what
    turns, is Peng et al. 2023 (arXiv:2309.00071).
    Paper to code: m is an entry of `positions`, $\theta_i$ one of `frequencies`.
    Raises ValueError when there are more frequencies than pairs.
    """
    moving, still = _moving_and_still(x, frequencies)
    pairs = moving[..., 0::2], moving[..., 1::2]
    turned = torch.stack(_turn(*pairs, positions, frequencies, attention_factor), dim=-1)
    return torch.cat([turned.flatten(-2), still], dim=-1)


def rotate_half_split(
    x: Float[Tensor, "*batch t d_head"],
    positions: Real[Tensor, "*#batch t"],
    frequencies: Float[Tensor, " pairs"],
    attention_factor: float | int = 1.0,
) -> Float[Tensor, "*batch t d_head"]:
    """Turn as `rotate_interleaved` does, but pair each number of the first half with the second's.

    The layout of GPT-NeoX, and of Llama as the `transformers` library stores it.
    """
    moving, still = _moving_and_still(x, frequencies)
    pairs = moving.chunk(2, dim=-1)
    turned = _turn(*pairs, positions, frequencies, attention_factor)
    return torch.cat([*turned, still], dim=-1)


def _moving_and_still(x: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    width, moving = x.shape[-1], 2 * len(frequencies)
    if moving > width:
        raise ValueError(
            f"each frequency turns two of the d_head numbers, got {len(frequencies)} frequencies "
            f"and d_head={width}; {width // 2} frequencies are the most that fit"
        )
    return x[..., :moving], x[..., moving:]


def _turn(
    first: Tensor,
    second: Tensor,
    positions: Tensor,
    frequencies: Tensor,
    attention_factor: float | int,
) -> tuple[Tensor, Tensor]:
    """Rotate the points (first, second) anticlockwise; in float32 at least, whatever x is in."""
    working = torch.promote_types(first.dtype, torch.float32)
    angle = angles(positions, frequencies)
    cos = (attention_factor * angle.cos()).to(working)
    sin = (attention_factor * angle.sin()).to(working)
    turned = first * cos - second * sin, first * sin + second * cos
    return turned[0].to(first.dtype), turned[1].to(first.dtype)


class Rotary:
    """A rotation with its settings, to be handed to an attention: `rotary(q, positions)`.

    The frequencies are no buffer of any module: `.bfloat16()` on a model must not round them.
    """

    def __init__(
        self,
        *,
        frequencies: Float[Tensor, " pairs"],
        rotate: Callable = rotate_interleaved,
        attention_factor: float | int = 1.0,
    ):
        self.frequencies, self.rotate = frequencies, rotate
        self.attention_factor = attention_factor

    def __call__(
        self, x: Float[Tensor, "*batch t d_head"], positions: Real[Tensor, "*#batch t"]
    ) -> Float[Tensor, "*batch t d_head"]:
        """Turn the queries or keys `x` to their positions."""
        return self.rotate(x, positions, self.frequencies, self.attention_factor)


def to_half_split(x: Float[Tensor, "*batch d_head"]) -> Float[Tensor, "*batch d_head"]:
    """Put interleaved numbers into the half-split order: first the firsts, then the seconds.

    >>> to_half_split(torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))
    tensor([0., 2., 4., 1., 3., 5.])
    """
    require_multiple(d_head=x.shape[-1], pair=2)
    return rearrange(x, "... (pairs two) -> ... (two pairs)", two=2)


def to_interleaved(x: Float[Tensor, "*batch d_head"]) -> Float[Tensor, "*batch d_head"]:
    """Undo `to_half_split`.

    >>> to_interleaved(torch.tensor([0.0, 2.0, 4.0, 1.0, 3.0, 5.0]))
    tensor([0., 1., 2., 3., 4., 5.])
    """
    require_multiple(d_head=x.shape[-1], pair=2)
    return rearrange(x, "... (two pairs) -> ... (pairs two)", two=2)


def rows_to_half_split(
    weight: Float[Tensor, "rows ..."], n_heads: int
) -> Float[Tensor, "rows ..."]:
    """Reorder the rows of a query or key projection, head by head; a bias is reordered alike.

    Both projections reordered, half-split rotation gives the scores that interleaved gave before.
    Raises ValueError when the rows are not `n_heads` times an even number.
    """
    require_multiple(rows=weight.shape[0], two_for_each_head=2 * n_heads)
    return rearrange(weight, "(h pairs two) ... -> (h two pairs) ...", h=n_heads, two=2)


def rows_to_interleaved(
    weight: Float[Tensor, "rows ..."], n_heads: int
) -> Float[Tensor, "rows ..."]:
    """Undo `rows_to_half_split`."""
    require_multiple(rows=weight.shape[0], two_for_each_head=2 * n_heads)
    return rearrange(weight, "(h two pairs) ... -> (h pairs two) ...", h=n_heads, two=2)
