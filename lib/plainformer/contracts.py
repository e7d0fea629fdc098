"""Promises that a signature cannot make, checked once, at the door."""

from torch import Tensor


def require_multiple(**sizes: int) -> None:
    """Raise unless the first size is a multiple of the second, as in d_model=64, n_heads=4.

    >>> require_multiple(d_model=130, n_heads=12)
    Traceback (most recent call last):
    ValueError: d_model must be a multiple of n_heads, got d_model=130 and n_heads=12; \
the nearest d_model that works is 132
    """
    (whole, size), (part, count) = sizes.items()
    if count < 1 or size < 1:
        raise ValueError(f"{whole} and {part} must be at least 1, got {size} and {count}")
    if size % count:
        nearest = count * max(1, round(size / count))
        raise ValueError(
            f"{whole} must be a multiple of {part}, got {whole}={size} and {part}={count}; "
            f"the nearest {whole} that works is {nearest}"
        )


def require_sizes(**sizes: int) -> None:
    """Raise unless every size is at least 1.

    >>> require_sizes(window=0)
    Traceback (most recent call last):
    ValueError: window must be at least 1, got 0; nothing fits otherwise
    """
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}; nothing fits otherwise")


def require_one_length(**lengths: int) -> None:
    """Raise unless all lengths are the same: those of tensors with one entry for each token.

    >>> require_one_length(k=11, v=7)
    Traceback (most recent call last):
    ValueError: k and v must be equally long, got k=11, v=7; pass those of the same tokens
    """
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name}={length}" for name, length in lengths.items())
        raise ValueError(
            f"{' and '.join(lengths)} must be equally long, got {got}; "
            f"pass those of the same tokens"
        )


def require_floats(**tensors: Tensor) -> None:
    """Raise unless all tensors hold fractions, in one dtype."""
    dtypes = {tensor.dtype for tensor in tensors.values()}
    if len(dtypes) > 1 or not all(dtype.is_floating_point for dtype in dtypes):
        got = ", ".join(f"{name}: {tensor.dtype}" for name, tensor in tensors.items())
        raise ValueError(
            f"{' and '.join(tensors)} must have one dtype, and one that holds fractions, "
            f"got {got}; convert them with x.to(torch.float32)"
        )
