"""Dropout by dropout.cu: the mask is a function of a seed, so the backward pass computes it again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.convolution.queued import Queued
from kernels.convolution.results import check_inputs, instance, result, vector

FILE = "dropout.cu"
BLOCK = 256  # threads, as in the kernel
_WORDS = 2**32
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW = np.uint64(_WORDS - 1)


def dropout(x: Any, p: float, seed: int, offset: int = 0, *, out: Any = None) -> Any:
    """x / (1 − p) where the mask of `seed` and `offset` is 1, else 0; return it before the kernel has finished.

    The backward pass is the same function of dy, with the same p, seed and offset. `x`: device array, C-contiguous,
    float16 or float32, of any shape. `p`: the probability of 0, at least 0 and below 1. `seed`, `offset`: whole
    numbers from 0 to 2**64 − 1; a network takes one seed, and another offset for each layer and step. `out`: of x's
    shape and type; None allocates it. A NaN or ∞ that is dropped is 0.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    dtype = check_inputs(x=x)
    threshold, factor = _kept(p, seed, offset)
    out = result(out, tuple(x.shape), dtype, x=x)
    if threshold == _WORDS:  # p is 0, or so small that no word is dropped
        out[...] = x
    elif x.size:  # a grid of no blocks is an invalid launch
        queued(x, out, seed, offset, threshold, factor).launch()
    return out


def queued(x: Any, out: Any, seed: int, offset: int, threshold: int, factor: float) -> Queued:
    """The launch on arrays that are not empty; an element stays if its word is below `threshold`."""
    each = 16 // x.dtype.itemsize  # elements of a thread
    entry = instance("dropout", x.dtype, vector(x.dtype, x.size, x, out), each)
    numbers = np.uint64(x.size), np.uint64(seed), np.uint64(offset), np.uint32(threshold), np.float32(factor)
    return Queued(FILE, entry, math.ceil(x.size / each / BLOCK), BLOCK, (x, out, *numbers))


def mask(count: int, p: float, seed: int, offset: int = 0) -> np.ndarray:
    """Which of `count` elements stay, as bool: what the kernel computes, in NumPy."""
    threshold, _ = _kept(p, seed, offset)
    numbers = np.arange(math.ceil(count / 4), dtype=np.uint64)
    counters = np.empty((numbers.size, 4), np.uint64)
    counters[:, 0], counters[:, 1] = numbers & _LOW, numbers >> np.uint64(32)
    counters[:, 2], counters[:, 3] = offset % _WORDS, offset // _WORDS
    return (philox(counters, (seed % _WORDS, seed // _WORDS)) < threshold).reshape(-1)[:count]


def philox(counters: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Philox 4 × 32 with ten rounds: four words of 32 bits, as uint64, of each row of four; `key`: two words.

    Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
    """
    a, b, c, d = np.asarray(counters, np.uint64).reshape(-1, 4).T
    keys = [np.uint64(word) for word in key]
    for _ in range(10):
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = second >> np.uint64(32) ^ b ^ keys[0], second & _LOW
        c, d = first >> np.uint64(32) ^ d ^ keys[1], first & _LOW
        keys = [key + step & _LOW for key, step in zip(keys, _STEPS, strict=True)]
    return np.stack([a, b, c, d], axis=1)


def _kept(p: float, seed: int, offset: int) -> tuple[int, float]:
    """The words of 2**32 with which an element stays, and its factor; ValueError for what is out of range."""
    if not 0 <= p < 1:
        raise ValueError(f"p is {p!r}; the probability of 0 must be at least 0 and below 1")
    for name, value in (("seed", seed), ("offset", offset)):
        if not isinstance(value, int) or not 0 <= value < 2**64:
            raise ValueError(f"{name} is {value!r}; it must be a whole number from 0 to 2**64 - 1")
    return round((1 - p) * _WORDS), 1 / (1 - p)
