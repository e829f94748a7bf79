"""Which element of a matrix each thread of a warp holds: the fragments of mma, wmma and ldmatrix.

Every layout except that of Volta's m8n8k4 follows one rule. Lane l has g = l / 4 ("groupID" in the PTX ISA) and t = l %
4 ("threadID_in_group"). A register holds e consecutive elements: e = 1 for tf32, s32, f32 and f64, 2 for f16 and bf16,
4 for 8-bit types, 8 for s4 and u4, 32 for b1. So the four lanes of one g hold 4·e elements of a row in order.

    A (16 × K)   row = g + 8·(r % 2), column = 4e·(r / 2) + e·t + i     register r, element i in it
    B (K × 8)    row = 4e·r + e·t + i, column = g
    C, D (16 × 8)  row = g + 8·(j / 2), column = 2t + j % 2             element j

With M = 8 there is no second half of the rows. These are the formulas of the PTX ISA, "Warp-level matrix instructions",
sections "Matrix Fragments for mma.m16n8k16 with floating point type", "… for mma.m16n8k32" and their neighbours.

PTX leaves the fragments of wmma opaque. Those here are an H100's, read with wmma.load on 2026-11-21: an M × N matrix is
cut into tiles of 16 × 8 as above, one after another; m8n32k16 is m32n8k16 with everything transposed; f16 fragments of
A and B with fewer than 16 elements repeat themselves. They do not depend on the layout in memory.
"""

import functools
import re
from typing import NamedTuple

import numpy as np

from warplab.simulator.constants import WARP_SIZE

BITS = {
    "b1": 1,
    **dict.fromkeys(("s4", "u4"), 4),
    **dict.fromkeys(("s8", "u8", "e4m3", "e5m2", "b8"), 8),
    **dict.fromkeys(("f16", "bf16", "b16"), 16),
    **dict.fromkeys(("tf32", "f32", "s32", "b32"), 32),
    "f64": 64,
}
WMMA_HALF_ELEMENTS = 16  # of an f16 fragment of A or B, whatever the shape


class Fragment(NamedTuple):
    """`row`, `column`: int64 arrays of shape (32, elements); element j of lane l is matrix[row[l, j], column[l, j]].

    Elements are in the order of the registers, low bits first. `rows`, `columns`: the shape of the matrix.
    """

    row: np.ndarray
    column: np.ndarray
    rows: int
    columns: int


class Shape(NamedTuple):
    """D (m × n) = A (m × k) · B (k × n) + C."""

    m: int
    n: int
    k: int


def parse_shape(text: str) -> Shape:
    """Parse a shape: `"m16n8k16"` → Shape(16, 8, 16). Raises KeyError for text of another form."""
    match = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", text)
    if match is None:
        raise KeyError(text)
    return Shape(*map(int, match.groups()))


def flops(name: str) -> int:
    """Return operations of one product, 2·m·n·k, as an FMA counts two. `name`: as in
    `LaunchProfile.tensor_operations`."""
    shape, _, factor = name.split(".")[:3]
    m, n, k = parse_shape(shape)
    if name.endswith(".sp"):
        k //= 2  # as many elements of a row of A are there
    return 2 * m * n * k * (4 if (shape, factor) == ("m8n8k4", "f16") else 1)


@functools.cache
def mma_fragment(shape: str, operand: str, kind: str, layout: str = "row") -> Fragment:
    """Return the fragment of `mma.sync`. `operand`: "a", "b", "c" or "d"; `kind`: the PTX type of its elements.

    `layout` ("row" or "col") matters only for f16 m8n8k4, where each of the four groups of eight lanes holds a matrix
    of its own; all four are returned. Raises KeyError for a shape or type that the rule does not cover.
    """
    m, n, k = parse_shape(shape)
    if shape == "m8n8k4" and kind in ("f16", "f32"):
        return _quad_pairs(operand, kind, layout)
    if n != 8 or m not in (8, 16):
        raise KeyError(shape)
    lane = np.arange(WARP_SIZE)[:, None]
    g, t = lane // 4, lane % 4
    e = max(1, 32 // BITS[kind])
    halves = m // 8
    if operand in ("c", "d"):
        j = np.arange(2 * halves)
        return _fragment(g + 8 * (j // 2), 2 * t + j % 2, m, n)
    if k % (4 * e):
        raise KeyError(shape)
    if operand == "a":
        j = np.arange(halves * k // 4)
        r, i = j // e, j % e
        return _fragment(g + 8 * (r % halves), 4 * e * (r // halves) + e * t + i, m, k)
    j = np.arange(k // 4)
    r, i = j // e, j % e
    return _fragment(4 * e * r + e * t + i, g + 0 * j, k, n)


class Metadata(NamedTuple):
    """Where a warp's registers say which elements of a row of a sparse A are there, one entry per element held.

    `lane`, `shift`: (16, k / 2), whose register, and the lowest bit in it; `bits`: of an index; `unit`: elements that
    share one; `chunk`: units of a row of which half are there.
    """

    lane: np.ndarray
    shift: np.ndarray
    bits: int
    unit: int
    chunk: int


@functools.cache
def metadata_fragment(shape: str, kind: str, selector: int) -> Metadata:
    """Return metadata of `mma.sp`. `kind`: PTX type of A; `selector`: which threads of each four hold it.

    PTX ISA, "Sparse matrix storage". In words of 16 bits for 16- and 32-bit types, of which a register holds row g
    below row g + 8; in words of 32 bits for the others, row g in a lane and row g + 8 in the next. Raises KeyError for
    a selector that the shape does not have.
    """
    m, _, k = parse_shape(shape)
    unit, bits, chunk = 1, 2, 4
    if BITS[kind] == 32:
        bits, chunk = 4, 2
    elif BITS[kind] == 4:
        unit = 2
    narrow = BITS[kind] >= 16
    row, place = np.arange(m)[:, None], np.arange(k // 2) // unit
    held = (16 if narrow else 32) // bits  # units in a word
    words = k // 2 // unit // held
    threads = words * (1 if narrow else 2)
    if m != 16 or words not in (1, 2) or not 0 <= selector < 4 // threads:
        raise KeyError(shape, selector)
    thread = place // held if narrow else 2 * (place // held) + row // 8
    lane = 4 * (row % 8) + selector * threads + thread
    shift = bits * (place % held) + (16 * (row // 8) if narrow else 0)
    lane, shift = np.broadcast_arrays(lane, shift)
    return Metadata(lane, shift.astype(np.uint32), bits, unit, chunk)


@functools.cache
def wmma_fragment(shape: str, operand: str, kind: str) -> Fragment:
    """Return the fragment of `wmma`, as nvcuda::wmma shows it in `fragment.x`. `operand`: "a", "b", "c" or "d".

    Raises KeyError for a shape that wmma does not have.
    """
    m, n, k = parse_shape(shape)
    if (m, n) == (8, 32):
        whole = wmma_fragment(f"m32n8k{k}", {"a": "b", "b": "a"}.get(operand, operand), kind)
        return _fragment(whole.column, whole.row, whole.columns, whole.rows)
    if (m, n) not in ((16, 16), (32, 8), (8, 8)):
        raise KeyError(shape)
    tile = mma_fragment(f"m{min(m, 16)}n8k{k}", operand, kind)
    steps_m = range(0, m, 16) if operand != "b" else (0,)
    steps_n = range(0, n, 8) if operand != "a" else (0,)
    row = np.concatenate([tile.row + i for i in steps_m for _ in steps_n], axis=1)
    column = np.concatenate([tile.column + j for _ in steps_m for j in steps_n], axis=1)
    if kind == "f16" and operand in ("a", "b"):
        times = WMMA_HALF_ELEMENTS // row.shape[1]
        row, column = np.tile(row, times), np.tile(column, times)
    rows, columns = {"a": (m, k), "b": (k, n)}.get(operand, (m, n))
    return _fragment(row, column, rows, columns)


@functools.cache
def ldmatrix_fragment(transposed: bool = False) -> Fragment:
    """Return one 8 × 8 matrix of 16-bit elements, two per lane, as `ldmatrix` delivers it to a warp.

    PTX ISA, "Warp-level matrix load instruction: ldmatrix". Row i is what lane i (for the second matrix lane 8 + i,
    and so on) points to.
    """
    lane = np.arange(WARP_SIZE)[:, None]
    row, column = lane // 4 + np.zeros(2, np.int64), 2 * (lane % 4) + np.arange(2)
    return _fragment(column, row, 8, 8) if transposed else _fragment(row, column, 8, 8)


def _quad_pairs(operand: str, kind: str, layout: str) -> Fragment:
    """Return mma.m8n8k4 with f16: four products at a time, stacked here along rows (A, C, D) or columns (B).

    PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16": lanes q·4 … q·4+3 and q·4+16 … q·4+19 have product q.
    """
    lane = np.arange(WARP_SIZE)[:, None]
    product, upper, t = lane // 4 % 4, lane // 16, lane % 4
    i = np.arange(4 if operand in ("a", "b") else 8)
    if operand in ("a", "b"):
        along_k = (layout == "row") == (operand == "a")  # a lane's four elements run along k
        outer = t + 4 * upper + 0 * i if along_k else i + 4 * upper
        inner = i + 0 * t if along_k else t + 0 * i
        if operand == "a":
            return _fragment(8 * product + outer, inner, 32, 4)
        return _fragment(inner, 8 * product + outer, 4, 32)
    if kind == "f16":
        return _fragment(8 * product + t + 4 * upper + 0 * i, i + 0 * t, 32, 8)
    row = (t & 1) + (i & 2) + 4 * upper
    column = (i & 4) + (t & 2) + (i & 1)
    return _fragment(8 * product + row, column, 32, 8)


def _fragment(row: np.ndarray, column: np.ndarray, rows: int, columns: int) -> Fragment:
    row, column = (np.ascontiguousarray(x) for x in np.broadcast_arrays(row, column))
    return Fragment(row, column, rows, columns)
