"""wgmma as data: what an instruction multiplies, and where its operands lie in shared memory.

A warpgroup (four warps, 128 threads) multiplies A (64 × k) by B (k × n), 32 bytes of k. B, and A unless it is in
registers, lie in shared memory where a *descriptor* of 64 bits says (PTX ISA, "Matrix Descriptor Format"): bits 0-13
the start address, 16-29 the leading and 32-45 the stride offset, each divided by 16; 49-51 the base offset; 62-63 the
swizzle: 0 none, 1 128 bytes, 2 64, 3 32. Chunks of 16 bytes, T elements, are grouped into lines of as many bytes as the
swizzle, 16 without one, and eight lines follow each other. With S the line's elements, the byte of element (row, k) of
A, or (column, k) of B, counted from the start, is

    K-major     row % 8 lines + row / 8 · stride + bytes of k; without swizzle the second T of k follow at `leading`
    MN-major    k % 8 lines + k / 8 · stride + row / S · leading + bytes of row % S;
                without swizzle `leading` and `stride` change places

Then the swizzle exchanges chunks: bits 4 to 6 of the address by bits 7 to 9 (64 bytes: 4, 5 by 7, 8; 32: 4 by 7),
counted from where the pattern starts, which is `base offset` lines after a multiple of eight. These are the canonical
layouts of CUTLASS (include/cute/atom/mma_traits_sm90_gmma.hpp). A `base offset` other than 0 is not held to a GPU.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from warplab.simulator.numerics import tensor_cores
from warplab.simulator.ptx.fragments import BITS, Fragment, Shape, mma_fragment, parse_shape
from warplab.simulator.ptx.program import Where

WARPS, THREADS, ROWS = 4, 128, 64
CHUNK_BYTES = 16
DEPTH_BYTES = 32  # of k that one instruction multiplies
SWIZZLES = (0, 128, 64, 32)  # bytes, by the number in a descriptor
_LINE_CHUNKS = np.array([1, 8, 4, 2])

_ALIKE = frozenset(("f16", "bf16", "tf32"))
_SMALL_FLOATS, _SMALL_INTEGERS = ("e4m3", "e5m2"), ("s8", "u8")
_SUMS = {
    **dict.fromkeys(("f16", *_SMALL_FLOATS), ("f16", "f32")),
    **dict.fromkeys(("bf16", "tf32"), ("f32",)),
    **dict.fromkeys(_SMALL_INTEGERS, ("s32",)),
}


@dataclass(eq=False)
class WarpgroupProduct:
    """One wgmma.mma_async: `name`, such as "m64n256k16.f32.f16"; PTX types of A, B and D, which is also C.

    `transposed`: A is M-major, B N-major. `negated`: A or B is multiplied by -1.
    """

    name: str
    shape: Shape
    kinds: tuple[str, str, str]
    transposed: tuple[bool, bool]
    negated: tuple[bool, bool]
    arithmetic: Callable
    where: Where
    text: str
    warps: int = WARPS  # that execute it together
    machine: int = WARPS  # instructions of the tensor cores, one per warp

    @property
    def sum_bytes(self) -> int:
        """Return bytes of an element of D."""
        return BITS[self.kinds[2]] // 8

    @property
    def registers(self) -> int:
        """Return how many registers of 32 bits of a thread D takes."""
        return self.shape.n * self.sum_bytes // 8


def warpgroup_product(
    shape: str,
    kinds: tuple[str, str, str],
    transposed: tuple[bool, bool],
    negated: tuple[bool, bool],
    saturate: bool,
    where: Where,
    text: str,
) -> WarpgroupProduct:
    """Return a wgmma. `kinds`: PTX types of A, B and D. KeyError for a form that wgmma does not have."""
    m, n, k = sizes = parse_shape(shape)
    a, b, d = kinds
    integers = a in _SMALL_INTEGERS
    family = next((f for f in (_SMALL_FLOATS, _SMALL_INTEGERS) if a in f), (a,))
    right = (
        m == ROWS,
        k * BITS[a] == 8 * DEPTH_BYTES,
        n in _columns(integers),
        b in family and (len(family) > 1 or a in _ALIKE),
        d in _SUMS[a],
        not saturate or integers,
        BITS[a] == 16 or not any(transposed),
    )
    if not all(right):
        raise KeyError(shape)
    if integers:
        arithmetic = tensor_cores.warpgroup_integers(saturate)
    else:
        arithmetic = tensor_cores.warpgroup_small_floats if a in _SMALL_FLOATS else tensor_cores.warpgroup_floats
    name = f"{shape}.{d}.{a}" + (f".{b}" if b != a else "")
    return WarpgroupProduct(name, sizes, kinds, transposed, negated, arithmetic, where, text)


def _columns(integers: bool) -> range | tuple[int, ...]:
    """Return the n that wgmma has."""
    return (8, 16, 24, *range(32, 257, 16)) if integers else range(8, 257, 8)


@functools.cache
def register_fragment(kind: str) -> Fragment:
    """Return A in registers, the 16 rows of one warp: held as by mma.sync."""
    return mma_fragment(f"m16n8k{8 * DEPTH_BYTES // BITS[kind]}", "a", kind)


# -- descriptors -------------------------------------------------------------------------------------------------------


class Descriptor(NamedTuple):
    """The fields of several descriptors, int64: bytes, the base offset in lines, and the number of the swizzle."""

    start: np.ndarray
    leading: np.ndarray
    stride: np.ndarray
    base: np.ndarray
    swizzle: np.ndarray


ADDRESS_BYTES = 1 << 18  # shared memory that a descriptor's start address tells apart


def unpack(bits: np.ndarray) -> Descriptor:
    """Return the fields of descriptors given as uint64."""
    word = bits.view(np.int64)
    start, leading, stride = ((word >> low & 0x3FFF) * CHUNK_BYTES for low in (0, 16, 32))
    return Descriptor(start, leading, stride, word >> 49 & 7, word >> 62 & 3)


def chunk_addresses(fields: Descriptor, rows: int, item: int, transposed: bool) -> np.ndarray:
    """Return addresses of the chunks of an operand of `rows` rows (columns of B) of `item`-byte elements: int64.

    Shape (descriptors, rows, 2), the two along k; `transposed`: (descriptors, rows / T, k).
    """
    start, leading, stride, base, swizzle = (field[:, None, None] for field in fields)
    chunks = _LINE_CHUNKS[swizzle]
    line = CHUNK_BYTES * chunks
    plain = swizzle == 0
    if transposed:
        row, k = np.arange(rows * item // CHUNK_BYTES)[:, None], np.arange(DEPTH_BYTES // item)
        far, near = np.where(plain, stride, leading), np.where(plain, leading, stride)
        address = start + k % 8 * line + k // 8 * near + row // chunks * far + row % chunks * CHUNK_BYTES
    else:
        row, half = np.arange(rows)[:, None], np.arange(2)
        address = start + row % 8 * line + row // 8 * stride + half * np.where(plain, leading, CHUNK_BYTES)
    return address ^ ((address >> 7) - base & chunks - 1) << 4


def elements(data: np.ndarray, item: int, transposed: bool) -> np.ndarray:
    """Return the operand (descriptors, rows, k), unsigned integers of `item` bytes, from the bytes of its chunks, an
    array of shape (*addresses, 16)."""
    values = np.ascontiguousarray(data).view(f"u{item}")
    groups = values.shape[0]
    if transposed:
        return values.swapaxes(2, 3).reshape(groups, -1, DEPTH_BYTES // item)
    return values.reshape(groups, -1, DEPTH_BYTES // item)
