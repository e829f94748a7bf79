"""Checks of the device arrays that a function is given before it hands them to a kernel."""

from collections.abc import Sequence
from typing import Any

import numpy as np

_RANKS = {1: "of one axis", 2: "a matrix, of two axes", 3: "of three axes"}


def check_array(
    name: str, array: Any, shape: tuple[int | None, ...] | None = None, *, dtype: Any = np.float32, alignment: int = 1
) -> None:
    """Raise TypeError or ValueError, naming array and remedy, unless `array` is on the device and as asked for.

    `array`: of CuPy or Numba; it must have no gaps in C order. `shape`: None for any; None for an axis leaves it open.
    `dtype`: what NumPy takes for one, or a tuple of several. `alignment`: bytes that its address must be a multiple of.
    """
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{name} is a {type(array).__name__} in host memory; copy it with cp.asarray({name})")
    found, held = tuple(interface["shape"]), np.dtype(interface["typestr"])
    allowed = [np.dtype(d) for d in (dtype if isinstance(dtype, tuple) else (dtype,))]
    if held not in allowed:
        raise ValueError(f"{name} is {held}; the kernel takes {' or '.join(d.name for d in allowed)}")
    if shape is not None and not _fits(found, shape):
        wanted = _RANKS[len(shape)] if set(shape) == {None} else shape
        raise ValueError(f"{name} has shape {found}; it must be {wanted}")
    if not _contiguous(found, interface.get("strides"), held.itemsize):
        raise ValueError(f"{name} is not contiguous, row after row; copy it with cp.ascontiguousarray({name})")
    offset = interface["data"][0] % alignment
    if offset:
        raise ValueError(
            f"{name} starts {offset} bytes past a multiple of {alignment}, which accesses of {alignment} bytes need; "
            f"copy it with {name}.copy(), or choose a kernel without them"
        )


def check_apart(name: str, array: Any, out: Any) -> None:
    """Raise ValueError if `array` and `out` share memory: the kernel would read what it has written."""
    starts = [x.__cuda_array_interface__["data"][0] for x in (array, out)]
    if starts[0] < starts[1] + out.nbytes and starts[1] < starts[0] + array.nbytes:
        raise ValueError(f"{name} and out overlap, and the kernel does not work in place; give out memory of its own")


def _fits(found: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    return len(found) == len(shape) and all(want in (None, have) for have, want in zip(found, shape, strict=True))


def _contiguous(shape: Sequence[int], strides: Sequence[int] | None, itemsize: int) -> bool:
    """Return whether an array has no gaps in C order; no strides mean so."""
    expected = itemsize
    for length, stride in zip(reversed(shape), reversed(strides or ()), strict=False):
        if length > 1 and stride != expected:
            return False
        expected *= length
    return True


def check_factors(a: Any, b: Any, *, dtype: Any = np.float32, transposed: str = "NN") -> tuple[int, int, int]:
    """Return m, n and k of the product of `a`, shape (m, k), and `b`, shape (k, n), both C-contiguous, of `dtype`.

    `transposed`: "T" for a factor that is given transposed, a as (k, m), b as (n, k).
    Raise as `check_array` does, and ValueError for shapes that do not fit or that 32 bits do not count.
    """
    for name, array in (("a", a), ("b", b)):
        check_array(name, array, (None, None), dtype=dtype)
        if max(array.shape) >= 2**31:
            raise ValueError(f"{name} has shape {array.shape}; the kernels count rows and columns with 32 bits")
    of_a, of_b = (letter == "T" for letter in transposed)
    (m, k), (depth, n) = a.shape[:: -1 if of_a else 1], b.shape[:: -1 if of_b else 1]
    if depth != k:
        sides = "rows" if of_a else "columns", "columns" if of_b else "rows"
        raise ValueError(
            f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}: the {sides[0]} of a ({k}) must be as many as the "
            f"{sides[1]} of b ({depth})"
        )
    return m, n, k


def check_product(out: Any, a: Any, b: Any, shape: tuple[int, int], *, dtype: Any = np.float32) -> None:
    """Raise unless `out` can take the product of `a` and `b`, which has that shape, without overlap."""
    check_array("out", out, (None, None), dtype=dtype)
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {tuple(out.shape)}; the product has {shape}")
    for name, array in (("a", a), ("b", b)):
        check_apart(name, array, out)
