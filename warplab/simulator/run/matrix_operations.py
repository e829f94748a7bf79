"""Matrix instructions at run time: products of mma and wmma, and the transfers of wmma, ldmatrix and stmatrix.

`MatrixOperations` runs a `Product` or a `Transfer` of `matrix_instructions` for a group of warps.
"""

import functools
from collections.abc import Iterator

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.errors import DivergentWarp, MisalignedAddress
from warplab.simulator.memory.array_locations import describe_element
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import subgroup
from warplab.simulator.numerics import tensor_cores
from warplab.simulator.ptx.fragments import BITS, Fragment, Metadata, ldmatrix_fragment
from warplab.simulator.translate import aligned_sums, half_products
from warplab.simulator.translate.block_writer import Site
from warplab.simulator.translate.matrix_instructions import Product, Transfer

WMMA_POINTER_BYTES, WMMA_STRIDE_BYTES = 32, 16  # CUDA C++ Programming Guide, "Warp Matrix Functions"
NEEDS_WHOLE_WARP = (
    "A matrix instruction needs the whole warp: no thread may have returned or gone another way, and the number of "
    "threads of a block must be a multiple of 32."
)
_METADATA = (
    "For 1 of 2 tf32 the four bits are 0b0100 or 0b1110; otherwise the two indices of each four elements must ascend. "
    "Does the selector name the threads that hold the metadata?"
)


class _Rows(Addresses):
    """Addresses of rows of 16 bytes, eight per 8 × 8 matrix. The banks serve one matrix after another.

    Measured for ldmatrix on an H100, where the lanes of other 16-byte accesses share passes. Not measured for stmatrix.
    """

    def wavefronts(self, offset: int, width: int, group, op: str) -> tuple[int, int]:
        start = self.at(offset).view(np.int64).reshape(-1, 8)
        place = start >> 4 & 7  # a row fills four banks, an eighth of them
        spread = np.bitwise_or.reduce(1 << place, axis=1) == 0xFF  # eight rows in eight places: one pass
        start, place = start[~spread], place[~spread]
        matrix = np.arange(start.shape[0])[:, None] << 3
        rows = np.unique((matrix | place) << 40 | start >> 7)
        passes = np.bincount(rows >> 40, minlength=8 * start.shape[0]).reshape(-1, 8).max(axis=1)
        return int(np.count_nonzero(spread) + passes.sum()), spread.shape[0]


class MatrixOperations:
    """Called by translated blocks. `lanes` are the group's, None for all lanes of the chunk."""

    def __init__(self, chunk) -> None:
        self.chunk = chunk

    @functools.cached_property
    def add(self) -> tensor_cores.Aligned:
        return aligned_sums.aligned(self.chunk.options, self.chunk.launch.log)

    def warps(self, instruction, lanes) -> int:
        """Return the number of warps. Raises DivergentWarp if lanes of one are missing."""
        chunk, group = self.chunk, self.chunk.group
        if group.count != WARP_SIZE * group.warps:
            active = group.active
            lane = int(np.argmax(active != 0xFFFFFFFF))
            here = int(active[lane]).bit_count()
            what = f"`{instruction.text.split()[0]}` with {here} of the {WARP_SIZE} threads of a warp"
            raise chunk.error(instruction, chunk.lane(lane, lanes), what, NEEDS_WHOLE_WARP, DivergentWarp)
        return group.warps

    # -- products ------------------------------------------------------------------------------------------------

    def product(self, instruction: Product, a, b, c, lanes, metadata=None) -> list[np.ndarray]:
        """Return the registers of D from those of A, B and C: unsigned integers, one per lane or one for all.

        `metadata`: those that say which elements a sparse A holds."""
        warps = self.warps(instruction, lanes)
        for notify in self.chunk.observers.matrix_product:
            notify(instruction)
        if instruction.tiles and half_products.ready(
            self.chunk.options, self.chunk.launch.log, instruction.kinds, warps * instruction.tiles * 16 * 8 * 16
        ):
            found = half_products.of_warps(a[:4], b[: 2 * instruction.tiles], c, warps)
            if found is not None:
                return found
        matrices = [
            self._matrix(registers, BITS[kind], fragment, gather, warps)
            for registers, kind, fragment, gather in zip(
                (a, b, c), instruction.kinds, instruction.fragments, instruction.gathers, strict=False
            )
        ]
        n = instruction.separate
        if n > 1:  # side by side, as if there were n times as many warps
            (a, b, c), d = matrices, instruction.fragments[3]
            a, c = (x.reshape(n, 8, -1, warps).transpose(1, 2, 0, 3).reshape(8, -1, n * warps) for x in (a, c))
            b = b.reshape(4, n, 8, warps).transpose(0, 2, 1, 3).reshape(4, 8, n * warps)
            result = tensor_cores.multiply_add(a, b, c, instruction.kinds, instruction.arithmetic, add=self.add)
            result = result.reshape(8, 8, n, warps).transpose(2, 0, 1, 3).reshape(d.rows, d.columns, warps)
        else:
            a, b, c = matrices
            of = instruction.metadata
            places = None if of is None else self._places(instruction, of, metadata, lanes, warps)
            result = tensor_cores.multiply_add(a, b, c, instruction.kinds, instruction.arithmetic, places, self.add)
        elements = result.reshape(-1, warps)[instruction.scatter].T
        return self._registers(elements, WARP_SIZE * warps)

    @staticmethod
    def _matrix(registers, bits: int, fragment: Fragment, gather: np.ndarray, warps: int) -> np.ndarray:
        """Return the bits that the lanes' registers hold as an array of shape (rows, columns, warps)."""
        together = np.empty((WARP_SIZE * warps, len(registers)), registers[0].dtype)
        for k, register in enumerate(registers):
            together[:, k] = register
        elements = together.view(f"u{max(bits, 8) // 8}")
        if bits < 8:  # each becomes a byte
            elements = elements[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
        return elements.reshape(warps, -1).T[gather].reshape(fragment.rows, fragment.columns, warps)

    def _places(self, instruction: Product, of: Metadata, metadata, lanes, warps: int) -> np.ndarray:
        """Return the columns in which the elements of a sparse A stand, (rows, k / 2, warps)."""
        registers = np.broadcast_to(metadata, WARP_SIZE * warps).reshape(warps, WARP_SIZE)
        index = registers[:, of.lane] >> of.shift & np.uint32((1 << of.bits) - 1)
        index = index.astype(np.int64).transpose(1, 2, 0)
        column = np.arange(index.shape[1])[:, None]
        if of.chunk == 2:  # one of two tf32: the halves of each count as elements of 16 bits
            wrong = (index != 0b0100) & (index != 0b1110)
            places = 2 * column + index // 8
        else:
            both = index.reshape(index.shape[0], -1, 2, of.unit, warps)
            wrong = np.repeat(both[:, :, 0] >= both[:, :, 1], 2, axis=1).reshape(index.shape)
            unit = column // of.unit
            places = (unit // 2 * 4 + index) * of.unit + column % of.unit
        if self.chunk.checked and wrong.any():
            row, place, warp = (int(x[0]) for x in np.nonzero(wrong))
            holder = int(of.lane[row, place])
            what = (
                f"`{instruction.text.split()[0]}`: metadata 0x{int(registers[warp, holder]):08x}, which does not "
                f"say which elements of row {row} of A are there"
            )
            raise self.chunk.error(instruction, self.chunk.lane(WARP_SIZE * warp + holder, lanes), what, _METADATA)
        return places

    @staticmethod
    def _registers(elements: np.ndarray, lanes: int) -> list[np.ndarray]:
        """Pack elements of shape (warps, 32 · elements per lane) into registers of 4 bytes (8 for f64)."""
        item = elements.itemsize
        packed = np.ascontiguousarray(elements).reshape(lanes, -1).view(f"u{max(4, item)}")
        return [np.ascontiguousarray(packed[:, k]) for k in range(packed.shape[1])]

    # -- wmma.load and wmma.store ----------------------------------------------------------------------------------

    def load(self, transfer: Transfer, base: np.ndarray, stride: np.ndarray, lanes) -> list[np.ndarray]:
        """Execute wmma.load: return a fragment's registers. `base`: the matrix's address; `stride`: elements from one
        row (column) to the next."""
        warps = self.warps(transfer.site, lanes)
        base, stride = self._origin(transfer, base, stride, lanes, warps)
        loaded, first = np.empty((warps, transfer.loaded), f"u{transfer.item}"), 0
        for site, addresses, who, elements in self._accesses(transfer, base, stride, transfer.by_tiles):
            data = np.stack(self._access(site, addresses, who, lanes), axis=-1).view(loaded.dtype)
            loaded[:, first : first + elements.size] = data.reshape(warps, -1)
            first += elements.size
        parts = [loaded[:, of] if isinstance(of, slice) else loaded.take(of, axis=1) for of in transfer.registers]
        return [np.ascontiguousarray(part).reshape(-1).view(f"u{max(4, transfer.item)}") for part in parts]

    @staticmethod
    def _accesses(
        transfer: Transfer, base: np.ndarray, stride: np.ndarray, by_tiles: bool
    ) -> Iterator[tuple[Site, Addresses, np.ndarray, np.ndarray]]:
        """Yield the accesses of a transfer: site, addresses, lanes of a warp, elements. Where all warps have one
        stride, they lie a number of bytes behind the first one, and share what is computed of its addresses."""
        step = int(stride[0, 0]) if (stride == stride[0]).all() else None
        shared: Addresses | None = None
        for number, (who, row, column) in enumerate(transfer.accesses):
            distance = None if step is None else transfer.distance(number, step)
            site, addresses = transfer.site_at(distance or 0), shared
            if distance is None or addresses is None:
                of_lanes = (base + transfer.offsets(row, column, stride)).reshape(-1)
                warps = stride.shape[0] if who.shape[0] == WARP_SIZE else 0
                addresses = _Rows(of_lanes) if by_tiles else Addresses(of_lanes, warps)
                shared = shared or addresses
            yield site, addresses, who, transfer.elements[number]

    def store(self, transfer: Transfer, base: np.ndarray, stride: np.ndarray, registers, lanes) -> None:
        warps = self.warps(transfer.site, lanes)
        base, stride = self._origin(transfer, base, stride, lanes, warps)
        fragment = transfer.fragment
        matrix = self._matrix(registers, 8 * transfer.item, fragment, transfer.gather, warps)
        matrix = np.ascontiguousarray(matrix.reshape(-1, warps).T)
        for site, addresses, who, elements in self._accesses(transfer, base, stride, False):
            data = np.ascontiguousarray(matrix[:, elements]).view(site.dtype)
            self._access(site, addresses, who, lanes, data.reshape(addresses.base.shape[0], -1).T)

    def _origin(self, transfer: Transfer, base, stride, lanes, warps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return each warp's address and stride, of shape (warps, 1)."""
        base, stride = (np.broadcast_to(x, WARP_SIZE * warps).reshape(warps, WARP_SIZE)[:, :1] for x in (base, stride))
        stride = stride.astype(np.uint64)
        if transfer.packed > 1:  # a stride that is not a multiple of 16 bytes stays one that is not
            words = np.uint64(transfer.packed)
            stride = np.where(stride % words == 0, stride // words, np.uint64(1))
        if self.chunk.checked:
            start, fragment = base + np.uint64(transfer.site.offset & 0xFFFFFFFFFFFFFFFF), transfer.fragment
            dense = transfer.item * (fragment.rows if transfer.by_column else fragment.columns)
            step = min(WMMA_STRIDE_BYTES, dense)  # 8 for 8-bit matrices that are 8 wide
            # A lane's part of a matrix of bytes has less than 32 of them, and PTX asks for its alignment alone.
            own = fragment.rows * fragment.columns // WARP_SIZE * transfer.item
            least_of_pointer = own if transfer.item == 1 or transfer.packed > 1 else WMMA_POINTER_BYTES
            for what, bad, least in (
                ("pointer", start % np.uint64(least_of_pointer) != 0, least_of_pointer),
                ("stride", stride * np.uint64(transfer.item) % np.uint64(step) != 0, step),
            ):
                if bad.any():
                    place = int(np.argmax(bad)) * WARP_SIZE
                    address = int(start[place // WARP_SIZE, 0])
                    where, name, index = self._place(transfer, address)
                    what = (
                        f"misaligned matrix: the {what} of `{transfer.site.text.split()[0]}` is not a multiple of "
                        f"{least} bytes{where}"
                    )
                    reason = (
                        f"wmma needs a pointer that is a multiple of {least_of_pointer} bytes and a leading dimension "
                        f"that is a multiple of {step} bytes."
                    )
                    lane, found = self.chunk.lane(place, lanes), {"address": address, "array": name, "index": index}
                    raise self.chunk.error(transfer.site, lane, what, reason, MisalignedAddress, **found)
        return base, stride

    def _place(self, transfer: Transfer, address: int) -> tuple[str, str | None, int | None]:
        """Return where a matrix in global memory begins: in words for messages, and as array and element."""
        allocation = self.chunk.device.memory.find(address) if transfer.site.space == "global" else None
        if allocation is None:
            return "", None, None
        place, index = describe_element(allocation, address, transfer.item)
        return f"; the matrix begins at {place.rstrip(',')}", allocation.name, index

    def _access(self, site, addresses: Addresses, who: np.ndarray, lanes, values=None):
        """Load, or store `values`, with lanes `who` of each warp of the group."""
        chunk, some = self.chunk, lanes
        if who.shape[0] < WARP_SIZE:
            every = chunk.all_lanes if lanes is None else lanes
            some = every.reshape(-1, WARP_SIZE)[:, who].reshape(-1)
        with subgroup(chunk, some):
            if values is None:
                return chunk.load_vector(site, addresses, some)
            return chunk.store_vector(site, addresses, tuple(values), some)

    # -- ldmatrix and stmatrix -------------------------------------------------------------------------------------

    def load_rows(self, site, base: np.ndarray, count: int, transposed: bool, lanes) -> list[np.ndarray]:
        """Execute ldmatrix: `count` registers. Lane 8i + j points to row j of matrix i, eight 16-bit elements."""
        warps = self.warps(site, lanes)
        who, addresses = self._row_addresses(base, count, warps)
        data = np.stack(self._access(site, _Rows(addresses), who, lanes), axis=-1).view(np.uint16)
        elements = data.reshape(warps, count, 64)[:, :, _row_places(transposed)]
        packed = np.ascontiguousarray(elements).reshape(warps, count, WARP_SIZE, 2).view(np.uint32)
        return [np.ascontiguousarray(packed[:, k]).reshape(-1) for k in range(count)]

    def store_rows(self, site, base: np.ndarray, registers, transposed: bool, lanes) -> None:
        """Execute stmatrix."""
        warps = self.warps(site, lanes)
        who, addresses = self._row_addresses(base, len(registers), warps)
        rows = np.empty((warps, len(registers), 64), np.uint16)
        for k, register in enumerate(registers):
            register = np.ascontiguousarray(np.broadcast_to(register, WARP_SIZE * warps))
            rows[:, k, _row_places(transposed)] = register.view(np.uint16).reshape(warps, -1)
        data = rows.reshape(addresses.shape[0], 8).view(site.dtype)
        self._access(site, _Rows(addresses), who, lanes, data.T)

    def transposed(self, instruction, register: np.ndarray, lanes) -> np.ndarray:
        """Execute movmatrix: an 8 × 8 matrix of 16-bit elements, held as ldmatrix delivers it, transposed."""
        warps = self.warps(instruction, lanes)
        register = np.ascontiguousarray(np.broadcast_to(register, WARP_SIZE * warps))
        matrix = np.empty((warps, 64), np.uint16)
        matrix[:, _row_places(False)] = register.view(np.uint16).reshape(warps, 64)
        return np.ascontiguousarray(matrix[:, _row_places(True)]).view(np.uint32).reshape(-1)

    @staticmethod
    def _row_addresses(base: np.ndarray, count: int, warps: int) -> tuple[np.ndarray, np.ndarray]:
        who = np.arange(8 * count)
        return who, np.broadcast_to(base, WARP_SIZE * warps).reshape(warps, WARP_SIZE)[:, who].reshape(-1)


def _row_places(transposed: bool) -> np.ndarray:
    """Return the positions, row by row, of the elements of the lanes' registers in a matrix."""
    fragment = ldmatrix_fragment(transposed)
    return (fragment.row * 8 + fragment.column).reshape(-1)
