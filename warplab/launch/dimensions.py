"""Grids and blocks as three integers."""

import numpy as np

from warplab.launch.errors import ArgumentError


def dimensions(value: int | tuple[int, ...], what: str) -> tuple[int, int, int]:
    """Return (x, y, z) of a grid or block given as an int or as one to three ints. `what` begins error messages."""
    parts = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"{what} must be a sequence of 1, 2 or 3 integers, got {list(parts)}")
    for part in parts:
        if not isinstance(part, int | np.integer):
            raise ArgumentError(
                f"{what} must be a sequence of integers, got {list(parts)}; "
                "for a number of blocks use integer division: (n + block - 1) // block"
            )
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z
