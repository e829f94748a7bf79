"""The inputs of a kernel check: arguments with known results, launch shapes, poison for outputs."""

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from warplab.launch.device_arrays import POISON_BYTE

_ROUNDED = "the index: float32 has 24 bits, so from 2**24 on it rounds every other whole number"
DEFAULT_SIZES = (1, 2, 3, 31, 32, 33, 127, 128, 129, 1000)


@dataclass(frozen=True)
class Case:
    """The arguments of one kernel launch and what must be in memory after it.

    `arguments`: maps each parameter of the kernel, in their order, to a NumPy array, a NumPy scalar, or None for an
    output. The check allocates an output with the shape and dtype of `expected[name]` and poisons it.
    `expected`: maps names to arrays after the launch. Arrays that it does not name must come back unmodified.
    `mistakes`: maps a sentence on where to look to a function of what an output then is, in place of the expected.
    """

    arguments: Mapping[str, np.ndarray | np.generic | None]
    expected: Mapping[str, np.ndarray]
    mistakes: Mapping[str, Callable[[], np.ndarray]] = field(default_factory=dict)

    def buffers(self) -> dict[str, np.ndarray | np.generic]:
        """Return fresh copies of the arguments, outputs poisoned."""
        return {
            name: poisoned(self.expected[name]) if value is None else value.copy()
            for name, value in self.arguments.items()
        }


Size = int | tuple[int, ...]  # such as the number of elements, or rows and columns
Dimensions = int | tuple[int, ...]  # x, y, z
MakeCase = Callable[[np.random.Generator, Any], Case]  # from a size, of the kind that it works with
Launch = tuple[Dimensions, Dimensions]  # blocks in the grid, threads in a block


def elementwise(
    function: Callable[..., np.ndarray],
    inputs: Sequence[str],
    output: str,
    *,
    length: str | None = None,
    dtype: np.typing.DTypeLike = np.float32,
) -> MakeCase:
    """Return a maker of cases for a kernel on vectors: `output[i] = function(inputs[0][i], inputs[1][i], ...)`.

    `function` works on whole arrays of `dtype` and returns one of the same shape. The kernel's parameters are the
    inputs, the output and, if `length` names it, the number of elements as an int32.
    """

    def make_case(rng: np.random.Generator, n: int) -> Case:
        arrays = [distinct(rng, n, dtype) for _ in inputs]
        arguments: dict[str, np.ndarray | np.generic | None] = dict(zip(inputs, arrays, strict=True))
        arguments[output] = None
        if length is not None:
            arguments[length] = np.int32(n)
        return Case(arguments, {output: np.asarray(function(*arrays))})

    return make_case


def at_the_end(
    function: Callable[..., np.ndarray], inputs: Sequence[str], output: str, *, length: str | None = None
) -> MakeCase:
    """Return a maker of cases as of `elementwise`, of float32, that ask for the last 100 elements of long vectors.

    All others are zeros, of which `function` must make zeros: a launch may leave them out (`kernel`'s `sample_blocks`).
    """

    def make_case(rng: np.random.Generator, n: int) -> Case:
        def padded(end: np.ndarray) -> np.ndarray:
            vector = np.zeros(n, np.float32)
            vector[-end.size :] = end
            return vector

        def rounded() -> np.ndarray:
            there = np.arange(n - 100, n).astype(np.float32).astype(int)
            vector = padded(poisoned(end))
            vector[there] = padded(end)[there]
            return vector

        gc.collect()  # the frames of a check that failed before hold vectors as long
        ends = [distinct(rng, 100) for _ in inputs]
        end = np.asarray(function(*ends))
        arguments: dict[str, np.ndarray | np.generic | None] = dict(zip(inputs, map(padded, ends), strict=True))
        arguments[output] = padded(poisoned(end))
        if length is not None:
            arguments[length] = np.int32(n)
        return Case(arguments, {output: padded(end)}, {_ROUNDED: rounded})

    return make_case


def distinct(rng: np.random.Generator, n: int, dtype: np.typing.DTypeLike = np.float32) -> np.ndarray:
    """Return `n` distinct values between 1 and 9, none whole, so that a wrong index or a rounded value always shows.

    float32 or float64; n is at most 2**20, the number of values that float32 tells apart here.
    """
    if not 0 < n <= 2**20:
        raise ValueError(f"distinct: n = {n}, expected 1 to {2**20}")
    return (1 + (rng.choice(2**20, n, replace=False) + 0.5) * 2.0**-17).astype(dtype)


def summable(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return float32 multiples of 1/64 between -64 and 64: sums of up to 2**14 of them are exact in any order."""
    if not 0 < prod(shape) <= 2**18:
        raise ValueError(f"summable: {prod(shape)} elements, expected 1 to {2**18}")
    most = np.where(rng.random(shape) < 1 / 8, 4096, 512)  # 12 bits are too many for a half, and few leave room
    return (rng.integers(-most, most + 1) / 64).astype(np.float32)


def cover(block: int, *, elements: int = 1) -> Callable[[int], Launch]:
    """Return the launch for n elements with one thread per `elements` of them: as few blocks of `block` as reach n."""
    return lambda n: (-(-n // (block * elements)), block)


def cover_tiles(block: tuple[int, int], *, tile: tuple[int, int] | None = None) -> Callable[[tuple[int, int]], Launch]:
    """Return the two-dimensional launch for a size of (rows, columns): one block per tile, whole or in part.

    `tile`: the (columns, rows) that a block covers; by default one element per thread.
    """
    across, down = tile or block
    return lambda size: ((-(-size[1] // across), -(-size[0] // down)), block)


def poisoned(like: np.ndarray) -> np.ndarray:
    """Return an array of the same shape and dtype, every byte `POISON_BYTE`; floating types hold NaN with a payload."""
    out = np.empty(like.shape, like.dtype)
    out.view(np.uint8)[...] = POISON_BYTE
    if np.issubdtype(out.dtype, np.floating):
        bits = out.view(f"u{out.dtype.itemsize}")
        bits |= np.array(np.nan, out.dtype).view(bits.dtype)
    return out


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compare element by element, bit for bit: a NaN equals the same NaN, and 0.0 differs from -0.0."""
    unsigned = f"u{a.dtype.itemsize}"
    return np.ascontiguousarray(a).view(unsigned) == np.ascontiguousarray(b).view(unsigned)
