"""Matrix instructions as data: which lanes hold and move which elements, and with what arithmetic.

A `Product` is one mma or wmma.mma of the program, a `Transfer` one wmma.load or wmma.store. `fragments` says which lane
holds which element, `tensor_cores` has the arithmetic; `run.matrix_operations` runs them for a group of warps.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.numerics import tensor_cores
from warplab.simulator.ptx.fragments import (
    BITS,
    Fragment,
    Metadata,
    metadata_fragment,
    mma_fragment,
    parse_shape,
    wmma_fragment,
)
from warplab.simulator.ptx.program import Where
from warplab.simulator.translate.block_writer import Site


@dataclass(eq=False)
class Product:
    """One mma or wmma.mma: `name`, such as "m16n8k16.f32.f16"; PTX types and fragments of A, B, C and D."""

    name: str
    kinds: tuple[str, str, str, str]
    fragments: tuple[Fragment, ...]  # four
    arithmetic: Callable
    where: Where
    text: str
    machine: int = 1  # instructions of the tensor cores that an H100 executes for it
    separate: int = 1  # products side by side: four for m8n8k4 with f16
    warps: int = 1  # that execute it together
    metadata: Metadata | None = None  # of a sparse A

    def __post_init__(self) -> None:
        a, b, *sums = self.kinds
        if b not in _FACTORS[a] or not _SUMS[a].issuperset(sums):
            raise KeyError(self.kinds)
        self.gathers = [_gather(fragment) for fragment in self.fragments[:3]]
        d, left = self.fragments[3], self.fragments[0]
        # Of 16 × 8 that `half_products` takes.
        self.tiles = d.columns // 8 if (left.rows, left.columns) == (16, 16) and self.metadata is None else 0
        self.scatter = (d.row * d.columns + d.column).reshape(-1)


def mma(shape: str, layouts: tuple[str, str], kinds, saturate: bool, where: Where, text: str) -> Product:
    """Return an mma. `kinds`: PTX types of A, B, C, D. KeyError for a form that tensor cores do not have."""
    fragments = tuple(
        mma_fragment(shape, operand, kind, layout)
        for operand, kind, layout in zip("abcd", kinds, (*layouts, "row", "row"), strict=True)
    )
    if shape == "m8n8k4" and kinds[0] == "f16":
        return Product(_name(shape, kinds), kinds, fragments, tensor_cores.quad_pair, where, text, 0, 4)
    if layouts != ("row", "col"):
        raise KeyError(layouts)
    machine = 2 if kinds[0] in ("e4m3", "e5m2", "s4", "u4") else 1
    return Product(_name(shape, kinds), kinds, fragments, _ARITHMETIC[kinds[0]](saturate), where, text, machine)


def single_bit_mma(shape: str, operation: str, where: Where, text: str) -> Product:
    """Return an mma of b1. `operation`: "xor" or "and"."""
    kinds = ("b1", "b1", "s32", "s32")
    fragments = tuple(mma_fragment(shape, operand, kind) for operand, kind in zip("abcd", kinds, strict=True))
    arithmetic = {"xor": tensor_cores.different_bits, "and": tensor_cores.integers(False)}[operation]
    machine = 2 if operation == "xor" else 1
    return Product(_name(shape, kinds), kinds, fragments, arithmetic, where, text, machine)


def sparse_mma(shape: str, kinds, saturate: bool, selector: int, where: Where, text: str) -> Product:
    """Return an mma.sp. `selector`: which threads hold the metadata."""
    m, n, k = parse_shape(shape)
    if shape not in _SPARSE[kinds[0]]:
        raise KeyError(shape)
    half = f"m{m}n{n}k{k // 2}"
    fragments = tuple(
        mma_fragment(half if operand == "a" else shape, operand, kind)
        for operand, kind in zip("abcd", kinds, strict=True)
    )
    machine = 2 if BITS[kinds[0]] == 4 or kinds[0] in ("e4m3", "e5m2") else 1
    metadata = metadata_fragment(shape, kinds[0], selector)
    name, arithmetic = _name(shape, kinds) + ".sp", _ARITHMETIC[kinds[0]](saturate)
    return Product(name, kinds, fragments, arithmetic, where, text, machine, metadata=metadata)


def wmma(shape: str, kinds, saturate: bool, where: Where, text: str) -> Product:
    """Return what `mma` does. The layouts in memory no longer matter."""
    fragments = tuple(wmma_fragment(shape, operand, kind) for operand, kind in zip("abcd", kinds, strict=True))
    arithmetic = _ARITHMETIC[kinds[0]](saturate)
    if kinds[0] == "tf32":
        arithmetic = tensor_cores.half_precision((np.s_[:4], np.s_[4:]))
    machine = {"f64": 1, "tf32": 4}.get(kinds[0], 2)
    return Product(_name(shape, kinds), kinds, fragments, arithmetic, where, text, machine)


_EIGHTS, _BYTES, _NIBBLES = ("e4m3", "e5m2"), ("s8", "u8"), ("s4", "u4")
_FACTORS: dict[str, tuple[str, ...]] = {
    kind: (kind,) for kind in ("f16", "bf16", "tf32", "f64", "b1")
}  # types of B by that of A
_FACTORS |= {kind: kinds for kinds in (_EIGHTS, _BYTES, _NIBBLES) for kind in kinds}
_SUMS = {  # types of C and D
    **dict.fromkeys(("f16", *_EIGHTS), frozenset(("f16", "f32"))),
    **dict.fromkeys(("bf16", "tf32"), frozenset(("f32",))),
    **dict.fromkeys((*_BYTES, *_NIBBLES, "b1"), frozenset(("s32",))),
    "f64": frozenset(("f64",)),
}
_WHOLE = tensor_cores.half_precision((np.s_[:],))
_ARITHMETIC = {
    **dict.fromkeys(("f16", "bf16", "tf32"), lambda saturate: _WHOLE),
    **dict.fromkeys(("e4m3", "e5m2"), lambda saturate: tensor_cores.eight_bit),
    **dict.fromkeys(("s8", "u8", "s4", "u4"), tensor_cores.integers),
    "f64": lambda saturate: tensor_cores.double_precision,
}
_SPARSE = {
    **dict.fromkeys(("f16", "bf16"), ("m16n8k16", "m16n8k32")),
    "tf32": ("m16n8k8", "m16n8k16"),
    **dict.fromkeys(("s8", "u8"), ("m16n8k32", "m16n8k64")),
    **dict.fromkeys(("s4", "u4"), ("m16n8k64", "m16n8k128")),
    **dict.fromkeys(("e4m3", "e5m2"), ("m16n8k64",)),
}


def _name(shape: str, kinds) -> str:
    a, b, _, d = kinds
    return f"{shape}.{d}.{a}" + (f".{b}" if b != a else "")


def _gather(fragment: Fragment) -> np.ndarray:
    """Return, row by row, each matrix element's position in the fragments (lane · elements + element)."""
    places = np.zeros(fragment.rows * fragment.columns, np.int64)
    elements = fragment.row.shape[1]
    # In reverse, as of elements held several times (f16 wmma) the first counts on an H100.
    where = (fragment.row * fragment.columns + fragment.column).reshape(-1)[::-1]
    places[where] = np.arange(WARP_SIZE * elements)[::-1]
    return places


@dataclass(eq=False)
class Transfer:
    """One wmma.load or wmma.store: what the lanes of a warp read or write, access by access.

    `accesses`: for each, the lanes that take part, and the row and column of each lane's first element; the other
    elements follow along the layout's direction. `site`: width and kind of one access; `by_tiles`: like ldmatrix.
    `packed`: numbers that share an element of the fragment, as those of 4 bits and 1 bit do.
    """

    site: Site
    fragment: Fragment
    by_column: bool
    item: int
    by_tiles: bool
    accesses: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    packed: int = 1

    def __post_init__(self) -> None:
        fragment, n = self.fragment, self.site.width // self.item
        self.scatter = (fragment.row * fragment.columns + fragment.column).reshape(-1)
        self.gather = _gather(fragment)
        step = np.arange(n) * (fragment.columns if self.by_column else 1)
        self.elements = [(row * fragment.columns + column)[:, None] + step for _, row, column in self.accesses]
        self.loaded = sum(elements.size for elements in self.elements)
        place = np.zeros(fragment.rows * fragment.columns, np.int64)  # of each element among all that are loaded
        place[np.concatenate([elements.reshape(-1) for elements in self.elements])] = np.arange(self.loaded)
        by_register = place[self.scatter].reshape(WARP_SIZE, -1, max(1, 4 // self.item)).swapaxes(0, 1)
        self.registers = [_run(places.reshape(-1)) for places in by_register]
        self._shifts = [_shift(self.accesses[0], access) for access in self.accesses]
        self._sites: dict[int, Site] = {}

    def site_at(self, distance: int) -> Site:
        """Return the site of accesses so many bytes behind those of `site`."""
        if distance not in self._sites:
            self._sites[distance] = replace(self.site, offset=self.site.offset + distance)
        return self._sites[distance]

    def distance(self, number: int, stride: int) -> int | None:
        """Return how many bytes an access lies behind the first one, if that is the same for all lanes."""
        shift = self._shifts[number]
        if shift is None:
            return None
        outer, inner = shift[::-1] if self.by_column else shift
        return (outer * stride + inner) * self.item

    def offsets(self, row: np.ndarray, column: np.ndarray, stride: np.ndarray) -> np.ndarray:
        """Return bytes from the matrix's first element, (warps, lanes); `stride` (warps, 1) in elements."""
        outer, inner = (column, row) if self.by_column else (row, column)
        return (outer.astype(np.uint64) * stride + inner.astype(np.uint64)) * np.uint64(self.item)


def _shift(first, access) -> tuple[int, int] | None:
    """Return how many rows and columns an access lies behind another, if that is so for all lanes."""
    (who, row, column), (lanes, rows, columns) = first, access
    if who.shape != lanes.shape:
        return None
    down, right = rows - row, columns - column
    return (int(down[0]), int(right[0])) if (down == down[0]).all() and (right == right[0]).all() else None


def _run(places: np.ndarray) -> np.ndarray | slice:
    """Return places in a row as a slice."""
    first, last = int(places[0]), int(places[-1]) + 1
    return slice(first, last) if np.array_equal(places, np.arange(first, last)) else places


def wmma_accesses(fragment: Fragment, operand: str, kind: str, by_column: bool, space: str):
    """Return how an H100 moves a wmma fragment: (bytes of an access, `by_tiles` and accesses as in `Transfer`).

    Read in the machine code that ptxas 13.0 generates from wmma.load and wmma.store for sm_90. A register's elements
    that are consecutive in memory take one access. 16-bit elements that are not are fetched in the other direction,
    8 × 8 at a time, and transposed between the lanes. Neighbouring 4- and 8-byte elements of C and D go in pairs.
    A and B of 8 and 16 bits in shared memory are read as by ldmatrix, up to four 8-row tiles at once.
    """
    item = BITS[kind] // 8
    per_register = max(1, 4 // item)
    along = fragment.row if by_column else fragment.column
    row, column = fragment.row, fragment.column
    if operand in ("a", "b") and kind == "f16":  # leave out duplicates
        elements = max(2, fragment.rows * fragment.columns // WARP_SIZE)
        row, column, along = row[:, :elements], column[:, :elements], along[:, :elements]
    together = 2 if item >= 4 and operand in ("c", "d") else per_register
    in_a_row = together > 1 and bool((along[:, 1] == along[:, 0] + 1).all())
    if item == 2 and not in_a_row:
        row, column = row // 8 * 8 + column % 8, column // 8 * 8 + row % 8
        in_a_row = True
    if not in_a_row:
        together = 1
    row, column = row[:, ::together], column[:, ::together]
    lanes = np.arange(WARP_SIZE)
    if space == "shared" and operand in ("a", "b") and item <= 2 and in_a_row:
        most = {1: 2, 2: 4}[item]
        accesses = []
        for first in range(0, row.shape[1], most):
            # Lane 8i + j gives the address of row j of tile i: where the fragment's lane 4j begins.
            tiles = range(first, min(first + most, row.shape[1]))
            rows, columns = (np.concatenate([x[::4, tile] for tile in tiles]) for x in (row, column))
            accesses.append((lanes[: rows.shape[0]], rows, columns))
        return 16, True, accesses
    return item * together, False, [(lanes, row[:, j], column[:, j]) for j in range(row.shape[1])]
