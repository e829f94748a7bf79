"""cupy.random on the simulator: NumPy's generators, their numbers put into device memory.

The distributions are CuPy's; the numbers differ from those that a GPU draws from the same seed.
"""

from __future__ import annotations

import numpy as np

from warplab.dropin.cupy._core.core import ndarray
from warplab.dropin.cupy._core.missing import missing as _missing

_state = {"generator": np.random.default_rng()}


def seed(seed=None) -> None:
    """Start the sequence of this module's functions again."""
    _state["generator"] = np.random.default_rng(seed)


def default_rng(seed=None) -> Generator:
    return Generator(np.random.default_rng(seed))


class Generator:
    """The stand-in for cupy.random.Generator, with the methods that the course uses."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def random(self, size=None, dtype=np.float64, out=None) -> ndarray:
        return _put(self._generator.random(size, np.dtype(dtype)), dtype)

    def standard_normal(self, size=None, dtype=np.float64, out=None) -> ndarray:
        return _put(self._generator.standard_normal(size, np.dtype(dtype)), dtype)

    def uniform(self, low=0.0, high=1.0, size=None, dtype=np.float64) -> ndarray:
        return _put(self._generator.uniform(low, high, size), dtype)

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=np.float64) -> ndarray:
        return _put(self._generator.normal(loc, scale, size), dtype)

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint: bool = False) -> ndarray:
        return _put(self._generator.integers(low, high, size, np.dtype(dtype), endpoint), dtype)


def rand(*size: int, dtype=float) -> ndarray:
    """Draw from [0, 1) uniformly; float32 or float64."""
    return random(size or None, dtype)


def random(size=None, dtype=float) -> ndarray:
    """Draw from [0, 1) uniformly; float32 or float64."""
    return Generator(_state["generator"]).random(size, _float_type(dtype))


random_sample = random


def randn(*size: int, dtype=float) -> ndarray:
    return standard_normal(size or None, dtype)


def standard_normal(size=None, dtype=float) -> ndarray:
    """Draw from the normal distribution of mean 0 and variance 1; float32 or float64."""
    return Generator(_state["generator"]).standard_normal(size, _float_type(dtype))


def normal(loc=0.0, scale=1.0, size=None, dtype=float) -> ndarray:
    return Generator(_state["generator"]).normal(loc, scale, size, _float_type(dtype))


def uniform(low=0.0, high=1.0, size=None, dtype=float) -> ndarray:
    return Generator(_state["generator"]).uniform(low, high, size, _float_type(dtype))


def randint(low: int, high: int | None = None, size=None, dtype=int) -> ndarray:
    """Draw integers from [low, high), or from [0, low) without `high`."""
    return Generator(_state["generator"]).integers(low, high, size, dtype)


def permutation(a) -> ndarray:
    return _put(_state["generator"].permutation(a._view if isinstance(a, ndarray) else a), None)


def shuffle(a: ndarray) -> None:
    a._write(..., _state["generator"].permutation(a._view))


def _float_type(dtype) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"cupy.random only supports float32 and float64, not {dtype}")
    return dtype


def _put(values, dtype) -> ndarray:
    return ndarray._from_host(np.asarray(values, dtype))


def __getattr__(name: str):
    raise _missing("cupy.random", name)
