"""How much arithmetic a block does, counted from its sizes."""

from typing import NamedTuple

from plainformer.contracts import require_sizes


class BlockFlops(NamedTuple):
    """The floating-point operations of one block, forwards; one multiplication and addition are 2.

    Only products of matrices count: norms, softmax, bends and biases do not.
    """

    projections: int  # queries, keys, values and the way out
    mixing: int  # scores, and the average of the values: all that grows with t squared
    feed_forward: int

    @property
    def total(self) -> int:
        """All three together."""
        return sum(self)


def block_flops(t: int, d_model: int, d_ff: int, *, n_matrices: int = 2) -> BlockFlops:
    r"""Count the matrix products of a block with full self-attention over `t` positions.

    $$ 8\, t\, d^2 + 4\, t^2 d + 2 \cdot 2\, t\, d\, d_{ff} $$

    The number of heads does not matter as long as they share `d_model`. A mask saves nothing here:
    what it forbids is computed first. `n_matrices` is 3 for a gated feed-forward layer.
    Units: FLOPs for one sequence, forwards. Training costs about three times as much.
    Raises ValueError when a size is below 1.
    >>> block_flops(512, 768, 3072)
    BlockFlops(projections=2415919104, mixing=805306368, feed_forward=4831838208)
    """
    require_sizes(t=t, d_model=d_model, d_ff=d_ff, n_matrices=n_matrices)
    return BlockFlops(8 * t * d_model**2, 4 * t**2 * d_model, 2 * n_matrices * t * d_model * d_ff)
