"""Promises that a signature cannot make, checked once, at the door."""


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
