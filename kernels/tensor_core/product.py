"""`multiply`: C = A · B by any step of the ladder, with its arguments checked."""

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.tensor_core import every_shape
from kernels.tensor_core.ladder import STEPS, Step
from kernels.tensor_core.ladder import step as step_of
from kernels.tensor_core.shape_rule import RULES, group_of
from warpcourse.bench import hopper
from warpcourse.bench.device_arguments import check_array, check_factors, check_product
from warplab import cp

MAX_GRID_Y = 65535
RESULTS = (np.dtype(np.float32), np.dtype(np.float16))
# Of factors by their dtype: their name, and the dtypes that a result may have.
_KINDS = {
    "float16": ("float16", RESULTS),
    "uint16": ("bfloat16", (np.dtype(np.float32), np.dtype(np.uint16))),
    "uint8": ("e4m3", RESULTS),
}


def multiply(a: Any, b: Any, out: Any = None, step: str | int = "mma_stages", dtype: Any = np.float32) -> Any:
    """Compute A · B on the tensor cores; return the result at once, before the kernel has finished.

    `a`: device array, float16, C-contiguous, of shape (m, k); `b`: likewise, of shape (k, n). `out`: likewise, float32
    or float16, of shape (m, n), without overlap with `a` or `b`; None allocates one of `dtype`. `step`: a name or
    number in STEPS. Sums are float32; a float16 result is rounded once, at the end.
    Steps 1 to 4 take any shape: rows that do not fit a kernel are copied into wider ones with zeros. Steps 5 and 6 do
    not copy: columns of a and b must be multiples of 8, the arrays start at multiples of 16 bytes.
    Raise TypeError for arrays in host memory, RuntimeError where the GPU lacks the instructions, ValueError for every
    other argument that does not fit.
    """
    return _by_step(step_of(step), a, b, out, dtype)


def _by_step(chosen: Step, a: Any, b: Any, out: Any, dtype: Any) -> Any:
    m, n, k = check_factors(a, b, dtype=np.float16)
    if out is None:
        if np.dtype(dtype) not in RESULTS:
            raise ValueError(f"dtype is {np.dtype(dtype)}; the kernels write float32 or float16")
        out = cp.empty((m, n), dtype)
    check_product(out, a, b, (m, n), dtype=RESULTS)
    if m == 0 or n == 0:
        return out  # a grid of no blocks is an invalid launch
    if k == 0:
        out.fill(0)
        return out
    if chosen.hopper:
        hopper.require(chosen.name, "mma_stages")
        _check_rows(chosen, a, b, out)
        chosen.launch(a, b, out)
    else:
        _launch_padded(chosen, a, b, out)
    return out


def multiply_any(a: Any, b: Any, out: Any = None, dtype: Any = None, transposed: str = "NN") -> Any:
    """Compute A · B by step 7, for any shape; return the result at once, before the kernel has finished. Where the GPU
    has not step 7's instructions, float16 is computed by step 4, in tiles chosen by shape.

    `a`, `b`, `out`, `dtype`: as `multiply` takes them, but `transposed` says of a and b each "N" or "T", as BLAS does:
    with "T", a is given as (k, m), b as (n, k). What the kernel is compiled for is chosen by `shape_rule`.
    Factors of uint16 are the bits of bfloat16, whose result is float32, or bfloat16 in uint16; those of uint8 the bits
    of e4m3, transposed "NT", with k a multiple of 16. `dtype`: by default float16, or uint16 for bfloat16.
    Raise as `multiply` does.
    """
    if transposed not in ("NN", "NT", "TN", "TT"):
        raise ValueError(f'transposed is {transposed!r}; it must be "NN", "NT", "TN" or "TT"')
    factors, results = _KINDS.get(np.dtype(getattr(a, "dtype", np.float16)).name, _KINDS["float16"])
    if factors == "float16" and hopper.missing("every_shape", "mma_stages"):
        check_factors(a, b, dtype=np.float16, transposed=transposed)
        a, b = (x if letter == "N" else cp.ascontiguousarray(x.T) for x, letter in zip((a, b), transposed, strict=True))
        return _by_step(replace(STEPS["mma_stages"], by_shape=True), a, b, out, dtype or np.float16)
    hopper.require("every_shape", "mma_stages")
    given = next(np.dtype(dtype) for dtype, (name, _) in _KINDS.items() if name == factors)
    m, n, k = check_factors(a, b, dtype=given, transposed=transposed)
    if factors == "e4m3" and (k % 16 or transposed != "NT"):
        raise ValueError(
            f'k is {k}, transposed "{transposed}"; e4m3 needs k in steps of 16 and "NT", b given as (n, k)'
        )
    if out is None:
        dtype = np.dtype(dtype or results[-1])
        if dtype not in results:
            raise ValueError(f"dtype is {dtype}; of these factors the kernels write {' or '.join(map(str, results))}")
        out = cp.empty((m, n), dtype)
    check_product(out, a, b, (m, n), dtype=results)
    if m and n and k:
        if factors == "e4m3":
            a, b, k = a.view(np.uint16), b.view(np.uint16), k // 2
        plan = RULES[factors].chosen(m, n, k, transposed)
        every_shape.launch(a, b, out, plan, transposed, group_of(m, n, k), factors=factors)
    elif m and n:
        out.fill(0)
    return out


def _check_rows(chosen: Step, a: Any, b: Any, out: Any) -> None:
    """Raise ValueError for rows that TMA, which wants multiples of 16 bytes, cannot copy."""
    for name, array in (("a", a), ("b", b), ("out", out)):
        wide = 16 // array.dtype.itemsize
        if array.shape[1] % wide:
            raise ValueError(
                f"{name} has {array.shape[1]} columns of {array.dtype}; {chosen.name} copies rows by TMA, which needs "
                f"a multiple of {wide}: pad the matrix with zeros, or take mma_stages"
            )
        check_array(name, array, alignment=16, dtype=array.dtype)


def _launch_padded(chosen: Step, a: Any, b: Any, out: Any) -> None:
    """Launch a step on arrays that fit it: those given, or copies with zeros to the right and below."""
    m, n, k = (
        -(-size // multiple) * multiple
        for size, multiple in zip((*out.shape, a.shape[1]), chosen.multiples, strict=True)
    )
    if chosen.grid(m, n)[1:] > (MAX_GRID_Y,):
        raise ValueError(
            f"a has {a.shape[0]:,} rows; {chosen.name} needs a grid of {chosen.grid(m, n)[1]:,} blocks in y, and "
            f"{MAX_GRID_Y:,} is the most: take mma_stages"
        )
    a, b = (_padded(chosen, x, shape) for x, shape in ((a, (m, k)), (b, (k, n))))
    fits = tuple(out.shape) == (m, n) and _aligned(chosen, out)
    c = out if fits else cp.empty((m, n), out.dtype)
    chosen.launch(a, b, c)
    if not fits:
        out[...] = c[: out.shape[0], : out.shape[1]]


def _padded(chosen: Step, x: Any, shape: tuple[int, int]) -> Any:
    """Return `x` where it has that shape and starts where it must, else a copy padded right and below with zeros."""
    if tuple(x.shape) == shape and _aligned(chosen, x):
        return x
    wide = cp.zeros(shape, x.dtype)
    wide[: x.shape[0], : x.shape[1]] = x
    return wide


def _aligned(chosen: Step, x: Any) -> bool:
    return x.__cuda_array_interface__["data"][0] % chosen.alignment == 0
