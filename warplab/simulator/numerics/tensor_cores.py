"""D = A·B + C as tensor cores compute it, bit for bit as an H100 does, for the matrices of many warps at once.

Tensor cores do not round as a chain of FMAs would. For f16, bf16 and tf32 the H100 multiplies exactly, aligns the k
products and C to the largest exponent among them, truncates each 25 bits below it, adds, and truncates the sum to f32
(or rounds it to f16). The scheme is that of Xie, Wang, Yang and Yang, "MMA-Sim: Bit-Accurate Reference Model of Tensor
Cores and Matrix Cores" (arXiv 2511.10909), whose figures for other GPUs differ: 24 bits and steps of 8 products on an
A100, 23 bits and steps of 4 on a V100. So last bits differ between generations, and between a GPU and NumPy.

Measured on an H100 (2026-11-21; tests/warplab/simulator/run/recorded/matrix_h100.npz holds a sample): 25 bits, one step
for all of k. Where the H100 has no mma.sync, its compiler uses other instructions, and so do the rules here:

    e4m3, e5m2  converted to f16, multiplied in two steps (elements 0 and 1 of each four, then 2 and 3), C added last
    wmma tf32   two steps of k = 4
    f64         a chain of FMAs from C, k ascending
    f16 m8n8k4  FMAs in f32
    s8, u8      exact; the sum wraps, or is clamped with .satfinite
    s4, u4, b1  exact

Sparse factors A (mma.sp) hold half of each row: only the elements of B that the metadata names take part.

The rules for wgmma are those that MMA-Sim found on an H100 (mmasim/simulator/nv.py of its code), and an H100 gave the
same bits on 2026-11-23 (wgmma_h100.npz): for f16, bf16 and tf32 as above, all of k in one step; e4m3 and e5m2 keep 13
bits below the largest exponent, and a sum in f32 is cut off after 13 bits of its fraction. DeepSeek-V3's report (arXiv
2412.19437) saw about 14 bits in such sums.

Those for tcgen05 are MMA-Sim's for a B200 (mmasim/simulator/nv_ptx.py), held to no GPU here: 25 bits for all types, and
35 for factors of 4 bits with scales, which are multiplied first.
"""

from collections.abc import Callable

import ml_dtypes
import numpy as np

from warplab.simulator.numerics import fma_f32, fma_f64

FRACTION_BITS = 25  # kept of each addend, below the largest exponent
_SCALED_FRACTION_BITS = 35  # of mxf4 and mxf4nvf4
_SMALL_FRACTION_BITS = 13  # of wgmma with 8-bit floats, of each addend and of a sum in f32
_WARPS_AT_A_TIME = 64  # so that a step's arrays stay in the processor's cache
_SUMS_AT_A_TIME = 1 << 14  # of warpgroups, likewise
_NAN = {"f16": 0x7FFF, "f32": 0x7FFFFFFF}
_DTYPES: dict[str, type] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
_DTYPES |= {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
_DTYPES |= {"e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn}
_DTYPES |= {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}
_DTYPES |= {"s8": np.int8, "u8": np.uint8, "s32": np.int32}
_LEAST = {  # the exponent of subnormal numbers; 8-bit factors are f16 by then
    **dict.fromkeys(("bf16", "tf32", "f32"), 2.0**-126),
    **dict.fromkeys(("f16", "e5m2", "e4m3"), 2.0**-14),
}


def decode(bits: np.ndarray, kind: str) -> np.ndarray:
    """Return values, as float64, of elements of PTX type `kind` given as unsigned integers of its width."""
    if kind == "tf32":  # the low 13 bits of an f32 do not count
        return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if kind == "s4":
        return ((bits ^ 8).astype(np.float64)) - 8
    if kind in ("u4", "b1"):
        return bits.astype(np.float64)
    return bits.view(_DTYPES[kind]).astype(np.float64, copy=False)


def encode(values: np.ndarray, kind: str) -> np.ndarray:
    """Return bits of float64 values rounded to nearest in `kind`; NaN as tensor cores write it."""
    if kind == "f64":
        return values.view(np.uint64)
    values = values.astype({"f16": np.float16, "f32": np.float32}[kind])
    bits: np.ndarray = values.view(f"u{values.itemsize}")
    return np.where(np.isnan(values), bits.dtype.type(_NAN[kind]), bits)


def cut_to_f32(values: np.ndarray) -> np.ndarray:
    """Return float64 values rounded toward zero to f32, as float64; what is 2**128 and more becomes infinite."""
    size = np.abs(values)
    nearest = size.astype(np.float32)
    down = np.nextafter(nearest, np.float32(0))
    cut = np.where((nearest.astype(np.float64) > size) & (size < 2.0**128), down, nearest)
    return np.copysign(cut.astype(np.float64), values)


def powers(values: np.ndarray, least: float) -> np.ndarray:
    """Return 2**exponent of each value in a format whose subnormals have `least`; 0 for zero, infinity and NaN."""
    power = (values.view(np.uint64) & np.uint64(0x7FF0000000000000)).view(np.float64)
    return np.where((values == 0) | ~np.isfinite(values), 0.0, np.maximum(power, least))


def aligned(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, least: tuple[float, float, float], bits: int, kind: str
) -> np.ndarray:
    """Return one step: C and the products a[i] · b[i] added, each cut off `bits` below the largest exponent.

    `a` and `b`: float64, (k, …) where the rest stretches to the shape of `c`, three-dimensional. `least`: of `powers`,
    of the types of A, B and C. `kind`: to which type the sum is rounded, "" for none; zeros are +0.
    """
    power_a, power_b = powers(a, least[0]), powers(b, least[1])
    largest = np.maximum(powers(c, least[2]), 2.0**-126)
    product = np.empty_like(largest)
    for pa, pb in zip(power_a, power_b, strict=True):
        np.multiply(pa, pb, out=product)
        np.maximum(largest, product, out=largest)
    scale = 2.0**bits / largest
    total = np.trunc(c * scale)
    for x, y in zip(a, b, strict=True):
        np.multiply(x, y, out=product)
        np.multiply(product, scale, out=product)
        np.trunc(product, out=product)
        np.add(total, product, out=total)
    total = total / scale + 0.0
    return rounded(total, kind) if kind else total


Aligned = Callable[..., np.ndarray]  # as `aligned`


def rounded(total: np.ndarray, kind: str) -> np.ndarray:
    """Return float64 with the values that `kind` holds: f32 cut off, f16 rounded to nearest, never -0."""
    if kind == "f32":
        return cut_to_f32(total) + 0.0
    return total.astype(np.float16).astype(np.float64) + 0.0


def half_precision(steps: tuple[slice, ...]) -> Callable:
    """Return a function for f16, bf16 and tf32: C goes into the first step."""

    def multiply(a, b, c, kinds, add):
        least = _LEAST[kinds[0]], _LEAST[kinds[1]], _LEAST[kinds[2]]
        # With an f32 C the adders give f32, which is then converted if D is f16 (wmma has that mixture).
        kind, total = "f32" if "f32" in kinds[2:] else "f16", c
        for step in steps:
            total = add(a[step], b[step], total, least, FRACTION_BITS, kind)
        return total

    return multiply


def eight_bit(a, b, c, kinds, add):
    """Multiply e4m3 and e5m2."""
    least = _LEAST[kinds[0]], _LEAST[kinds[1]], _LEAST[kinds[3]]
    pairs = np.arange(a.shape[0]) % 4 < 2
    total = np.zeros_like(c)
    for step in (pairs, ~pairs):
        total = add(a[step], b[step], total, least, FRACTION_BITS, kinds[3])
    dtype = np.float32 if kinds[3] == "f32" else np.float64  # the sum of two f16 is exact in float64
    return (total.astype(dtype) + c.astype(dtype)).astype(np.float64)


def double_precision(a, b, c, kinds, add):
    """Multiply f64."""
    total = c
    for x, y in zip(a, b, strict=True):
        total = fma_f64(x, y, total)
    return total


def integers(saturate: bool) -> Callable:
    """Return a function for s8, u8, s4, u4: sums of at most 2**21 and a 32-bit C are exact in float64."""

    def multiply(a, b, c, kinds, add):
        total = c.copy()
        for x, y in zip(a, b, strict=True):
            total += x * y
        return np.clip(total, -(2.0**31), 2.0**31 - 1) if saturate else total

    return multiply


def different_bits(a, b, c, kinds, add):
    """Multiply b1 with .xor.popc. With .and.popc, ones and zeros are multiplied as `integers` are."""
    total = c.copy()
    for x, y in zip(a, b, strict=True):
        total += x != y
    return total


def quad_pair(a, b, c, kinds, add):
    """Multiply f16 in m8n8k4."""
    x, y, c = (x.astype(np.float32) for x in (a, b, c))
    if kinds[3] == "f32":
        total = x[0] * y[0] + np.float32(0)
        for k in range(1, 4):
            total = fma_f32(x[k], y[k], total)
        return (total + c).astype(np.float64)
    low, high = (fma_f32(x[k + 1], y[k + 1], x[k] * y[k]) for k in (0, 2))
    return (c + low + high).astype(np.float64)


# -- wgmma: A (warpgroups, 64, k), B (warpgroups, n, k), C (warpgroups, 64, n), float64 --------------------------------


def warpgroup_floats(a, b, c, kinds, add):
    """Multiply wgmma's f16, bf16 and tf32."""
    least = _LEAST[kinds[0]], _LEAST[kinds[1]], _LEAST[kinds[2]]
    return add(*_by_depth(a, b), c, least, FRACTION_BITS, kinds[2])


def warpgroup_small_floats(a, b, c, kinds, add):
    """Multiply wgmma's e4m3 and e5m2."""
    own = {"e4m3": 2.0**-6}
    least = own.get(kinds[0], _LEAST[kinds[0]]), own.get(kinds[1], _LEAST[kinds[1]]), _LEAST[kinds[2]]
    total = add(*_by_depth(a, b), c, least, _SMALL_FRACTION_BITS, "")
    if kinds[2] == "f32":
        unit = powers(total, _LEAST["f32"]) * 2.0**-_SMALL_FRACTION_BITS
        total = np.where(unit > 0, np.trunc(total / np.where(unit > 0, unit, 1.0)) * unit, total)
    return rounded(total, kinds[2])


def _by_depth(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return A and B as arrays (k, warpgroups, 64, 1) and (k, warpgroups, 1, n)."""
    a, b = (np.ascontiguousarray(x.transpose(2, 0, 1)) for x in (a, b))
    return a[..., None], b[:, :, None]


def warpgroup_integers(saturate: bool) -> Callable:
    """Return a function for wgmma of s8 and u8: exact, as in `integers`."""

    def multiply(a, b, c, kinds, add):
        total = a @ b.swapaxes(1, 2) + c
        return np.clip(total, -(2.0**31), 2.0**31 - 1) if saturate else total

    return multiply


def warpgroup_product(
    a, b, c, kinds: tuple[str, str, str], negated, arithmetic: Callable, add: Aligned = aligned
) -> np.ndarray:
    """Return bits of D = A·B + C from those of A, B and C, shapes as above. `kinds`: PTX types of A, B, and D and C.

    `negated`: whether A and B are multiplied by -1. `arithmetic`: one of the functions above, which takes sums of
    products by `add`.
    """
    d = np.empty(c.shape, c.dtype)
    step = max(1, _SUMS_AT_A_TIME // (c.shape[1] * c.shape[2]))
    for start in range(0, c.shape[0], step):
        part = np.s_[start : start + step]
        values = [decode(np.ascontiguousarray(x[part]), kind) for x, kind in zip((a, b, c), kinds, strict=True)]
        left, right = (-x if minus else x for x, minus in zip(values, negated, strict=False))
        total = arithmetic(left, right, values[2], kinds, add)
        d[part] = total.astype(np.int64).astype(np.uint32) if kinds[2] == "s32" else encode(total, kinds[2])
    return d


# -- tcgen05: A (products, m, k), B (products, n, k), C (products, m, n), float64, scale factors included --------------


def tensor_memory_product(a, b, c, kinds: tuple[str, str, str], saturate: bool, add: Aligned = aligned) -> np.ndarray:
    """Return the words of D = A·B + C, uint32. `kinds`: PTX types of A, B, and D and C. `add`: as above."""
    if kinds[2] == "s32":
        return warpgroup_integers(saturate)(a, b, c, kinds, add).astype(np.int64).astype(np.uint32)
    own = {**_LEAST, "e4m3": 2.0**-6}
    least = own.get(kinds[0], 0.0), own.get(kinds[1], 0.0), own[kinds[2]]
    bits = _SCALED_FRACTION_BITS if a.shape[2] == 64 else FRACTION_BITS
    d = np.empty(c.shape, np.uint32)
    for k in range(c.shape[0]):
        part = np.s_[k : k + 1]
        d[part] = encode(add(*_by_depth(a[part], b[part]), c[part], least, bits, kinds[2]), kinds[2])
    return d


# -- mma and wmma ------------------------------------------------------------------------------------------------------


def multiply_add(
    a,
    b,
    c,
    kinds: tuple[str, str, str, str],
    arithmetic: Callable,
    places: np.ndarray | None = None,
    add: Aligned = aligned,
) -> np.ndarray:
    """Return bits of D, shape (m, n, warps), from the bits of A (m, k, warps), B (k, n, warps) and C (m, n, warps).

    `kinds`: PTX types of A, B, C and D; elements of less than a byte take one each. `arithmetic`: one of the functions
    above. `add`: as above. `places`, of the shape of A: the rows of B with which a sparse A's elements are multiplied.
    """
    d = np.empty(c.shape, {"f16": "u2", "f64": "u8"}.get(kinds[3], "u4"))
    for start in range(0, c.shape[2], _WARPS_AT_A_TIME):
        part = np.s_[:, :, start : start + _WARPS_AT_A_TIME]
        # Columns of B lie together, as rows of A do: k by k apart they would meet in a few lines of the nearest cache.
        parts = a[part], b[part].swapaxes(0, 1), c[part]
        values = [decode(np.ascontiguousarray(x), kind) for x, kind in zip(parts, kinds, strict=False)]
        values[1] = values[1].swapaxes(0, 1)
        left, right = values[0].swapaxes(0, 1)[:, :, None], values[1][:, None]
        if places is not None:
            rows = places[part].swapaxes(0, 1)[:, :, None]
            right = values[1][rows, np.arange(b.shape[1])[:, None], np.arange(rows.shape[3])]
        total = arithmetic(left, right, values[2], kinds, add)
        d[part] = total.astype(np.int64).astype(np.uint32) if kinds[3] == "s32" else encode(total, kinds[3])
    return d
