"""Random arrays of all dtypes for the tests of CuPy's stand-in: all bits of their type, special values among them."""

from __future__ import annotations

import numpy as np

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def random_array(shape: tuple[int, ...], dtype, seed: int) -> np.ndarray:
    """Return random numbers: integers and bools of all bits; floats normally distributed, with NaN, infinities and
    zeros of both signs among them where there are more than 100."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        size = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer(rng.bytes(size), dtype).reshape(shape).copy()
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return (random_array(shape, part, seed) + 1j * rng.standard_normal(shape)).astype(dtype)
    values = np.asarray(rng.standard_normal(shape)).astype(dtype)
    if values.size > 100:
        values.reshape(-1)[rng.permutation(values.size)[:5]] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    return values
