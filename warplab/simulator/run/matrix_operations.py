"""Matrix instructions: mma and wmma on registers, and how wmma and ldmatrix move matrices to and from memory.

`fragments` says which lane holds which element, `tensor_cores` computes the product. A `Product` or a `Transfer` is one
instruction of the program; `MatrixOperations` runs it for a group of warps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warplab.simulator.count.counters import WARP_SIZE
from warplab.simulator.errors import DivergentWarp, MisalignedAddress
from warplab.simulator.memory.array_locations import of_array
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.numerics import tensor_cores
from warplab.simulator.ptx.fragments import BITS, Fragment, ldmatrix_fragment, mma_fragment, wmma_fragment
from warplab.simulator.ptx.program import Where
from warplab.simulator.run.lane_groups import part

WMMA_POINTER_BYTES, WMMA_STRIDE_BYTES = 32, 16  # CUDA C++ Programming Guide, "Warp Matrix Functions"
NEEDS_WHOLE_WARP = (
    "A matrix instruction needs the whole warp: no thread may have returned or gone another way, and the number of "
    "threads of a block must be a multiple of 32."
)


@dataclass(eq=False)
class Product:
    """One mma or wmma.mma: `name`, such as "m16n8k16.f32.f16"; PTX types and fragments of A, B, C and D."""

    name: str
    kinds: tuple[str, str, str, str]
    fragments: tuple[Fragment, Fragment, Fragment, Fragment]
    arithmetic: Callable
    where: Where
    text: str
    machine: int = 1  # instructions of the tensor cores that an H100 executes for it
    separate: int = 1  # products side by side: four for m8n8k4 with f16

    def __post_init__(self) -> None:
        self.gathers = [_gather(fragment) for fragment in self.fragments[:3]]
        d = self.fragments[3]
        self.scatter = (d.row * d.columns + d.column).reshape(-1)


def mma(shape: str, layouts: tuple[str, str], kinds, saturate: bool, where: Where, text: str) -> Product:
    """`kinds`: PTX types of A, B, C, D. KeyError for a form that tensor cores do not have."""
    fragments = tuple(
        mma_fragment(shape, operand, kind, layout)
        for operand, kind, layout in zip("abcd", kinds, (*layouts, "row", "row"), strict=True)
    )
    if shape == "m8n8k4" and kinds[0] == "f16":
        return Product(_name(shape, kinds), kinds, fragments, tensor_cores.quad_pair, where, text, 0, 4)
    if layouts != ("row", "col"):
        raise KeyError(layouts)
    machine = 2 if kinds[0] in ("e4m3", "e5m2") else 1
    return Product(_name(shape, kinds), kinds, fragments, _ARITHMETIC[kinds[0]](saturate), where, text, machine)


def wmma(shape: str, kinds, saturate: bool, where: Where, text: str) -> Product:
    """Like `mma`. The layouts in memory do not matter any more."""
    fragments = tuple(wmma_fragment(shape, operand, kind) for operand, kind in zip("abcd", kinds, strict=True))
    arithmetic = _ARITHMETIC[kinds[0]](saturate)
    if kinds[0] == "tf32":
        arithmetic = tensor_cores.half_precision((np.s_[:4], np.s_[4:]))
    machine = {"f64": 1, "tf32": 4}.get(kinds[0], 2)
    return Product(_name(shape, kinds), kinds, fragments, arithmetic, where, text, machine)


_WHOLE = tensor_cores.half_precision((np.s_[:],))
_ARITHMETIC = {
    **dict.fromkeys(("f16", "bf16", "tf32"), lambda saturate: _WHOLE),
    **dict.fromkeys(("e4m3", "e5m2"), lambda saturate: tensor_cores.eight_bit),
    **dict.fromkeys(("s8", "u8"), tensor_cores.integers),
    "f64": lambda saturate: tensor_cores.double_precision,
}


def _name(shape: str, kinds) -> str:
    a, b, _, d = kinds
    return f"{shape}.{d}.{a}" + (f".{b}" if b != a else "")


def _gather(fragment: Fragment) -> np.ndarray:
    """For each element of the matrix, row by row, the place in the fragments (lane · elements + element)."""
    places = np.zeros(fragment.rows * fragment.columns, np.int64)
    elements = fragment.row.shape[1]
    # In reverse: of elements held several times (f16 wmma) the first counts, as on an H100.
    where = (fragment.row * fragment.columns + fragment.column).reshape(-1)[::-1]
    places[where] = np.arange(WARP_SIZE * elements)[::-1]
    return places


@dataclass(eq=False)
class Transfer:
    """One wmma.load or wmma.store: what the lanes of a warp read or write, access by access.

    `accesses`: for each, the lanes that take part and the row and column of the first element of each of them; the
    other elements follow along the layout's direction. `site`: width and kind of one access; `by_tiles`: like ldmatrix.
    """

    site: object
    fragment: Fragment
    by_column: bool
    item: int
    by_tiles: bool
    accesses: list[tuple[np.ndarray, np.ndarray, np.ndarray]]

    def __post_init__(self) -> None:
        fragment, n = self.fragment, self.site.width // self.item
        self.scatter = (fragment.row * fragment.columns + fragment.column).reshape(-1)
        self.gather = _gather(fragment)
        step = np.arange(n) * (fragment.columns if self.by_column else 1)
        self.elements = [(row * fragment.columns + column)[:, None] + step for _, row, column in self.accesses]

    def offsets(self, row: np.ndarray, column: np.ndarray, stride: np.ndarray) -> np.ndarray:
        """Bytes from the matrix's first element, (warps, lanes); `stride` (warps, 1) in elements."""
        outer, inner = (column, row) if self.by_column else (row, column)
        return (outer.astype(np.uint64) * stride + inner.astype(np.uint64)) * np.uint64(self.item)


def wmma_accesses(fragment: Fragment, operand: str, kind: str, by_column: bool, space: str):
    """How an H100 moves a wmma fragment: (bytes of an access, `by_tiles` and accesses as in `Transfer`).

    Read from the machine code that ptxas 13.0 makes of wmma.load and wmma.store for sm_90. A register's elements
    that follow one another in memory take one access; 16-bit elements that do not are fetched the other way round,
    8 × 8 at a time, and transposed between the lanes; neighbouring 4- and 8-byte elements of C and D go in pairs;
    A and B of 8 and 16 bits in shared memory are read as by ldmatrix, up to four 8-row tiles at once.
    """
    item = BITS[kind] // 8
    per_register = max(1, 4 // item)
    along = fragment.row if by_column else fragment.column
    row, column = fragment.row, fragment.column
    if operand in ("a", "b") and kind == "f16":  # leave out what is there twice
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


class _Rows(Addresses):
    """Addresses of rows of 16 bytes, eight for each 8 × 8 matrix: the banks serve one matrix after another.

    Measured for ldmatrix on an H100; the lanes of other 16-byte accesses share passes. Not measured for stmatrix.
    """

    def wavefronts(self, offset: int, width: int, group, op: str) -> tuple[int, int]:
        start = self.at(offset).view(np.int64).reshape(-1, 8)
        place = start >> 4 & 7  # a row fills four banks, one eighth of all
        spread = np.bitwise_or.reduce(1 << place, axis=1) == 0xFF  # eight rows in eight places: one pass
        start, place = start[~spread], place[~spread]
        matrix = np.arange(start.shape[0])[:, None] << 3
        rows = np.unique((matrix | place) << 40 | start >> 7)
        passes = np.bincount(rows >> 40, minlength=8 * start.shape[0]).reshape(-1, 8).max(axis=1)
        return int(np.count_nonzero(spread) + passes.sum()), spread.shape[0]


class MatrixOperations:
    """Called by translated blocks; `lanes` are the group's, None for all lanes of the chunk."""

    def __init__(self, chunk) -> None:
        self.chunk = chunk

    def _warps(self, instruction, lanes) -> int:
        """Number of warps, all of whose lanes are there. DivergentWarp if some are not."""
        chunk, group = self.chunk, self.chunk.group
        if group.count != WARP_SIZE * group.warps:
            active = group.active
            lane = int(np.argmax(active != 0xFFFFFFFF))
            here = int(active[lane]).bit_count()
            raise DivergentWarp(
                f"`{instruction.text.split()[0]}` with {here} of the {WARP_SIZE} threads of a warp",
                reason=NEEDS_WHOLE_WARP,
                **chunk.where(instruction, lane if lanes is None else int(lanes[lane])),
            )
        return group.warps

    # -- products ------------------------------------------------------------------------------------------------

    def product(self, instruction: Product, a, b, c, lanes) -> list[np.ndarray]:
        """Registers of D from those of A, B and C: arrays of unsigned integers with an entry a lane or one for all."""
        warps = self._warps(instruction, lanes)
        if self.chunk.counting is not None:
            self.chunk.counting.matrix(instruction.where, instruction.name, self.chunk.group, instruction.machine)
        matrices = [
            self._matrix(registers, BITS[kind] // 8, fragment, gather, warps)
            for registers, kind, fragment, gather in zip(
                (a, b, c), instruction.kinds, instruction.fragments, instruction.gathers, strict=False
            )
        ]
        n = instruction.separate
        if n > 1:  # side by side, as if of n times as many warps
            (a, b, c), d = matrices, instruction.fragments[3]
            a, c = (x.reshape(n, 8, -1, warps).transpose(1, 2, 0, 3).reshape(8, -1, n * warps) for x in (a, c))
            b = b.reshape(4, n, 8, warps).transpose(0, 2, 1, 3).reshape(4, 8, n * warps)
            result = tensor_cores.multiply_add(a, b, c, instruction.kinds, instruction.arithmetic)
            result = result.reshape(8, 8, n, warps).transpose(2, 0, 1, 3).reshape(d.rows, d.columns, warps)
        else:
            result = tensor_cores.multiply_add(*matrices, instruction.kinds, instruction.arithmetic)
        elements = result.reshape(-1, warps)[instruction.scatter].T
        return self._registers(elements, WARP_SIZE * warps)

    @staticmethod
    def _matrix(registers, item: int, fragment: Fragment, gather: np.ndarray, warps: int) -> np.ndarray:
        """(rows, columns, warps) of the bits that the lanes' registers hold."""
        together = np.empty((WARP_SIZE * warps, len(registers)), registers[0].dtype)
        for k, register in enumerate(registers):
            together[:, k] = register
        elements = together.view(f"u{item}").reshape(warps, -1)
        return elements.T[gather].reshape(fragment.rows, fragment.columns, warps)

    @staticmethod
    def _registers(elements: np.ndarray, lanes: int) -> list[np.ndarray]:
        """Registers, 4 bytes wide (8 for f64), of (warps, 32 · elements a lane) bits."""
        item = elements.itemsize
        packed = np.ascontiguousarray(elements).reshape(lanes, -1).view(f"u{max(4, item)}")
        return [np.ascontiguousarray(packed[:, k]) for k in range(packed.shape[1])]

    # -- wmma.load and wmma.store ----------------------------------------------------------------------------------

    def load(self, transfer: Transfer, base: np.ndarray, stride: np.ndarray, lanes) -> list[np.ndarray]:
        """Registers of a fragment. `base`: address of the matrix; `stride`: elements from row (column) to row."""
        warps = self._warps(transfer.site, lanes)
        base, stride = self._origin(transfer, base, stride, lanes, warps)
        fragment = transfer.fragment
        matrix = np.empty((warps, fragment.rows * fragment.columns), f"u{transfer.item}")
        for (who, row, column), elements in zip(transfer.accesses, transfer.elements, strict=True):
            addresses = (base + transfer.offsets(row, column, stride)).reshape(-1)
            parts = self._access(transfer.site, addresses, who, lanes, transfer.by_tiles)
            data = np.stack(parts, axis=-1).view(matrix.dtype)
            matrix[:, elements] = data.reshape(warps, *elements.shape)
        return self._registers(matrix[:, transfer.scatter], WARP_SIZE * warps)

    def store(self, transfer: Transfer, base: np.ndarray, stride: np.ndarray, registers, lanes) -> None:
        warps = self._warps(transfer.site, lanes)
        base, stride = self._origin(transfer, base, stride, lanes, warps)
        fragment = transfer.fragment
        matrix = self._matrix(registers, transfer.item, fragment, transfer.gather, warps)
        matrix = np.ascontiguousarray(matrix.reshape(-1, warps).T)
        for (who, row, column), elements in zip(transfer.accesses, transfer.elements, strict=True):
            addresses = (base + transfer.offsets(row, column, stride)).reshape(-1)
            data = np.ascontiguousarray(matrix[:, elements]).view(transfer.site.dtype)
            self._access(transfer.site, addresses, who, lanes, False, data.reshape(addresses.shape[0], -1).T)

    def _origin(self, transfer: Transfer, base, stride, lanes, warps: int) -> tuple[np.ndarray, np.ndarray]:
        """Address and stride of each warp, (warps, 1)."""
        base, stride = (np.broadcast_to(x, WARP_SIZE * warps).reshape(warps, WARP_SIZE)[:, :1] for x in (base, stride))
        stride = stride.astype(np.uint64)
        if self.chunk.access.checks is not None:
            start, fragment = base + np.uint64(transfer.site.offset), transfer.fragment
            dense = transfer.item * (fragment.rows if transfer.by_column else fragment.columns)
            step = min(WMMA_STRIDE_BYTES, dense)  # 8 for the 8-bit matrices that are 8 wide
            for what, bad, least in (
                ("pointer", start % np.uint64(WMMA_POINTER_BYTES) != 0, WMMA_POINTER_BYTES),
                ("stride", stride * np.uint64(transfer.item) % np.uint64(step) != 0, step),
            ):
                if bad.any():
                    place = int(np.argmax(bad)) * WARP_SIZE
                    where, name, index = self._place(transfer, int(start[place // WARP_SIZE, 0]))
                    raise MisalignedAddress(
                        f"misaligned matrix: the {what} of `{transfer.site.text.split()[0]}` is no multiple of "
                        f"{least} bytes{where}",
                        array=name,
                        index=index,
                        reason="wmma needs a pointer that is a multiple of 32 bytes and a leading dimension that is "
                        "a multiple of 16 bytes.",
                        address=int(start[place // WARP_SIZE, 0]),
                        **self.chunk.where(transfer.site, place if lanes is None else int(lanes[place])),
                    )
        return base, stride

    def _place(self, transfer: Transfer, address: int) -> tuple[str, str | None, int | None]:
        """Where a matrix in global memory begins, for messages: in words, its array and the element."""
        allocation = self.chunk.device.memory.find(address) if transfer.site.space == "global" else None
        if allocation is None:
            return "", None, None
        place, index = of_array(allocation, address, transfer.item)
        return f"; the matrix begins at {place.rstrip(',')}", allocation.name, index

    def _access(self, site, addresses: np.ndarray, who: np.ndarray, lanes, by_tiles: bool, values=None):
        """Load, or store `values`, with the lanes `who` of each warp of the group."""
        chunk, some = self.chunk, lanes
        if who.shape[0] < WARP_SIZE:
            every = chunk.all_lanes if lanes is None else lanes
            some = every.reshape(-1, WARP_SIZE)[:, who].reshape(-1)
        addresses = _Rows(addresses) if by_tiles else Addresses(addresses)
        with part(chunk, some):
            if values is None:
                return chunk.load_vector(site, addresses, some)
            return chunk.store_vector(site, addresses, tuple(values), some)

    # -- ldmatrix and stmatrix -------------------------------------------------------------------------------------

    def load_rows(self, site, base: np.ndarray, count: int, transposed: bool, lanes) -> list[np.ndarray]:
        """ldmatrix: `count` registers. Lane 8i + j points to row j of matrix i, eight 16-bit elements."""
        warps = self._warps(site, lanes)
        who, addresses = self._row_addresses(base, count, warps)
        data = np.stack(self._access(site, addresses, who, lanes, True), axis=-1).view(np.uint16)
        elements = data.reshape(warps, count, 64)[:, :, _row_places(transposed)]
        packed = np.ascontiguousarray(elements).reshape(warps, count, WARP_SIZE, 2).view(np.uint32)
        return [np.ascontiguousarray(packed[:, k]).reshape(-1) for k in range(count)]

    def store_rows(self, site, base: np.ndarray, registers, transposed: bool, lanes) -> None:
        """stmatrix."""
        warps = self._warps(site, lanes)
        who, addresses = self._row_addresses(base, len(registers), warps)
        rows = np.empty((warps, len(registers), 64), np.uint16)
        for k, register in enumerate(registers):
            register = np.ascontiguousarray(np.broadcast_to(register, WARP_SIZE * warps))
            rows[:, k, _row_places(transposed)] = register.view(np.uint16).reshape(warps, -1)
        data = rows.reshape(addresses.shape[0], 8).view(site.dtype)
        self._access(site, addresses, who, lanes, True, data.T)

    @staticmethod
    def _row_addresses(base: np.ndarray, count: int, warps: int) -> tuple[np.ndarray, np.ndarray]:
        who = np.arange(8 * count)
        return who, np.broadcast_to(base, WARP_SIZE * warps).reshape(warps, WARP_SIZE)[:, who].reshape(-1)


def _row_places(transposed: bool) -> np.ndarray:
    """Where the elements of the lanes' registers lie in a matrix, row by row."""
    fragment = ldmatrix_fragment(transposed)
    return (fragment.row * 8 + fragment.column).reshape(-1)
