"""Likely causes of wrong results from tensor cores: where a learner should look."""

from collections.abc import Mapping
from typing import Any

import numpy as np

TILE = 16
LOAD_OR_STORE = "_matrix_sync("  # in a source line that loads or stores a fragment of wmma
PAST_THE_END = "a tile past the end must be neither loaded nor stored: which warps have one, and is there a guard?"
WRONG = (
    "what the fragments of both factors and of the sums hold: the layout, the stride, the element where each begins; "
    "then what is done with the sums"
)


def look_at(arguments: Mapping[str, Any], expected: np.ndarray, got: np.ndarray) -> str:
    """Return where to look for a wrong product of two matrices; `expected` and `got` have the output's shape."""
    return _turned_factor(arguments, expected, got) or WRONG


def _turned_factor(arguments: Mapping[str, Any], expected: np.ndarray, got: np.ndarray) -> str:
    """Return where to look if the product is as if all tiles of one factor were transposed; else empty."""
    factors = {name: value for name, value in arguments.items() if _has_whole_tiles(value)}
    if len(factors) != 2 or got.ndim != 2:
        return ""
    (_, left), (_, right) = factors.items()
    for transposed in (True, False):
        if not _is_product(left, right, transposed, expected):
            continue
        for name, value in factors.items():
            first, second = (_turned(value) if factor is value else factor for factor in (left, right))
            if _is_product(first, second, transposed, got):
                return (
                    f"the layout of {name}'s fragment: this is the result if each tile of {name} is read transposed, "
                    "row_major where it is col_major or the other way round"
                )
    return ""


def _has_whole_tiles(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 2 and not any(side % TILE for side in value.shape)


def _turned(matrix: np.ndarray) -> np.ndarray:
    """Transpose each tile of 16 × 16 in its place."""
    rows, columns = matrix.shape
    tiles = matrix.reshape(rows // TILE, TILE, columns // TILE, TILE)
    return tiles.transpose(0, 3, 2, 1).reshape(rows, columns)


def _is_product(left: np.ndarray, right: np.ndarray, transposed: bool, result: np.ndarray) -> bool:
    right = right.T if transposed else right
    if left.shape[1] != right.shape[0] or (left.shape[0], right.shape[1]) != result.shape:
        return False
    product = left.astype(np.float64) @ right.astype(np.float64)
    return bool(np.allclose(product, result, rtol=1e-3, atol=1e-3))
