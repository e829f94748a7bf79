"""wgmma at run time: products of warpgroups, and the groups of them that a thread can wait for.

A product is computed when it is issued, for all warpgroups of the group of lanes at once. What it reads in shared
memory counts as read twice, when it is issued and when its warpgroup waits for it, since the hardware may read at any
time in between: whoever writes there meanwhile is caught. `warpgroup_registers` looks after the registers.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.errors import DivergentWarp, SimulatorError, UnorderedRegisters
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.recurring import fixed, recurring, repeated
from warplab.simulator.numerics import tensor_cores
from warplab.simulator.ptx.fragments import BITS
from warplab.simulator.run.late_reads import require_unchanged
from warplab.simulator.translate import half_products
from warplab.simulator.translate.block_writer import Site
from warplab.simulator.translate.warpgroup_instructions import (
    ADDRESS_BYTES,
    CHUNK_BYTES,
    DEPTH_BYTES,
    ROWS,
    SWIZZLES,
    THREADS,
    WARPS,
    WarpgroupProduct,
    chunk_addresses,
    elements,
    register_fragment,
    unpack,
)

NEEDS_WARPGROUP = (
    "A wgmma instruction needs its whole warpgroup, four warps in a row whose first has a number that is a multiple of "
    "4: all 128 threads must reach it, and the number of threads of a block that does must be a multiple of 128."
)
_UNCHANGED = (
    "Whoever writes there must wait until the product is over: wgmma.wait_group first, and a barrier or an mbarrier "
    "where other threads write."
)
_PLACES = -(10**9)  # of warpgroups, among the places where threads synchronise


@dataclass(eq=False)
class _Reading:
    """What one operand of several warpgroups is read from: `addresses` of each piece of 16 bytes, the lane in whose
    name it is read, its warpgroup, the number of its group, and its bytes at the issue as two uint64."""

    site: Site
    addresses: Addresses
    lanes: np.ndarray
    warpgroup: np.ndarray
    group: np.ndarray
    data: np.ndarray

    def select(self, chosen: np.ndarray) -> "_Reading":
        arrays = self.lanes, self.warpgroup, self.group, self.data
        return _Reading(self.site, Addresses(self.addresses.base[chosen]), *(array[chosen] for array in arrays))


class Warpgroups:
    """The warpgroups of one chunk. Translated blocks call it; `lanes` are the group's, None for all of the chunk."""

    def __init__(self, chunk: Any) -> None:
        self.chunk = chunk
        self.reading: list[_Reading] = []

    @functools.cached_property
    def of_lane(self) -> np.ndarray:
        """Return the number of each lane's warpgroup."""
        per_block = -(-self.chunk.threads // THREADS)
        own = np.arange(self.chunk.lanes) - self.chunk.block_of * self.chunk.threads
        return self.chunk.block_of * per_block + own // THREADS

    @functools.cached_property
    def committed(self) -> np.ndarray:
        """Return how many groups of products each warpgroup has closed."""
        return np.zeros(int(self.of_lane[-1]) + 1, np.int64)

    @functools.cached_property
    def issued(self) -> np.ndarray:
        """Return the number of the group of each warpgroup's latest product, -1 before the first."""
        return np.full(self.committed.shape, -1)

    @functools.cached_property
    def done(self) -> np.ndarray:
        """Return how many groups each warpgroup has waited for."""
        return np.zeros_like(self.committed)

    def _first_lanes(self, instruction: Any, lanes: np.ndarray | None) -> np.ndarray:
        """Return the first lane of each warpgroup. Raises DivergentWarp if lanes of one are missing."""
        every = self.chunk.all_lanes if lanes is None else lanes
        first = every[::THREADS]
        warpgroup = self.of_lane[every]
        if every.shape[0] % THREADS or (np.bincount(warpgroup)[warpgroup] != THREADS).any():
            count = np.bincount(warpgroup)[warpgroup]
            lane = int(np.argmax(count != THREADS))
            raise DivergentWarp(
                f"`{instruction.text.split()[0]}` with {int(count[lane])} of the {THREADS} threads of a warpgroup",
                reason=NEEDS_WARPGROUP,
                **self.chunk.where(instruction, int(every[lane])),
            )
        return first

    # -- groups ----------------------------------------------------------------------------------------------------

    def fence(self, instruction: Any, lanes: np.ndarray | None) -> None:
        """Execute wgmma.fence: order accesses to registers, which the translation has examined."""
        self._first_lanes(instruction, lanes)

    def commit(self, instruction: Any, lanes: np.ndarray | None) -> None:
        """Execute wgmma.commit_group."""
        self.committed[self.of_lane[self._first_lanes(instruction, lanes)]] += 1

    def wait(self, instruction: Any, most: int, lanes: np.ndarray | None) -> None:
        """Execute wgmma.wait_group: at most the latest `most` groups stay under way."""
        first = self._first_lanes(instruction, lanes)
        warpgroup = self.of_lane[first]
        self.done[warpgroup] = np.maximum(self.done[warpgroup], self.committed[warpgroup] - most)
        limit = np.full(self.committed.shape, -1)
        limit[warpgroup] = self.done[warpgroup]
        left, over = [], False
        for reading in self.reading:
            ready = reading.group < limit[reading.warpgroup]
            if ready.any():
                over = True
                self._end(reading if ready.all() else reading.select(ready))
            if not ready.all():
                left.append(reading.select(~ready))
        self.reading = left
        if over:
            self._tell(warpgroup, first, lanes)

    def _tell(self, warpgroup: np.ndarray, first: np.ndarray, lanes: np.ndarray | None) -> None:
        """Let all threads of these warpgroups know that their products have read."""
        observers, every = self.chunk.observers, self.chunk.all_lanes if lanes is None else lanes
        for notify in observers.arrive:
            notify(_PLACES - warpgroup, first)
        for notify in observers.phase_over:
            notify(_PLACES - warpgroup)
        for notify in observers.wait_over:
            notify(_PLACES - self.of_lane[every], every)

    def _end(self, reading: _Reading) -> None:
        """Let a thread know that these operands have been read."""
        site, addresses, lanes = reading.site, reading.addresses, reading.lanes
        low, high = (self._bytes(site, addresses) != reading.data).T
        reader = f"`{site.text.split()[0]}` could still"
        require_unchanged(self.chunk, site, addresses.base, lanes, low | high, reader, _UNCHANGED)
        self._notify_read(site, addresses, lanes)

    def _notify_read(self, site: Site, addresses: Addresses, lanes: np.ndarray) -> None:
        for notify in self.chunk.observers.copy_read:
            notify(site, "shared", addresses, lanes)

    def _bytes(self, site: Site, addresses: Addresses) -> np.ndarray:
        """Return the 16 bytes at each address, as two uint64."""
        view, index = self.chunk.access.elements(site, "shared", addresses)
        return np.stack([view[k:].take(index) for k in range(site.count)], axis=-1)

    # -- products --------------------------------------------------------------------------------------------------

    def product(self, instruction: WarpgroupProduct, sums, sites, a, b, add, lanes) -> list[np.ndarray]:
        """Execute wgmma.mma_async: return D's registers, uint32, from `sums`, C's, which count where `add` holds.

        `a`: a descriptor, or a tuple of registers; `b`: a descriptor; `sites`: of their reads in shared memory.
        """
        chunk, first = self.chunk, self._first_lanes(instruction, lanes)
        for notify in chunk.observers.matrix_product:
            notify(instruction)
        kinds, shape = instruction.kinds, instruction.shape
        items = BITS[kinds[0]] // 8
        left = a if isinstance(a, tuple) else self._operand(instruction, sites[0], "A", a, ROWS, items, first, lanes)
        right = self._operand(instruction, sites[1], "B", b, shape.n, items, first, lanes)
        added = self._same(instruction, "scale-d", add, first, lanes)
        self.issued[self.of_lane[first]] = self.committed[self.of_lane[first]]
        if not added.any():
            sums = [np.zeros(1, np.uint32)] * len(sums)
        products = first.shape[0] * ROWS * shape.n * shape.k
        if added.all() == added.any() and half_products.ready(chunk.options, chunk.launch.log, kinds, products):
            found = half_products.of_warpgroups(left, right, instruction.negated, sums)
            if found is not None:
                return found
        if isinstance(left, tuple):
            left = self._from_registers(left, kinds[0], first.shape[0])
        held = self._from_sums(instruction, sums, first.shape[0])
        if not added.all():
            held = np.where(added[:, None, None], held, held.dtype.type(0))
        how = instruction.negated, instruction.arithmetic, chunk.matrix.add
        d = tensor_cores.warpgroup_product(left, right, held, kinds, *how)
        return self._to_sums(d, first.shape[0])

    def _same(self, instruction: Any, what: str, values: np.ndarray, first: np.ndarray, lanes) -> np.ndarray:
        """Return one value per warpgroup of an operand that all its threads must give alike."""
        if values.shape[0] == 1:
            return np.broadcast_to(values, first.shape)
        together = values.reshape(-1, THREADS)
        if self.chunk.checked and (together != together[:, :1]).any():
            place = int(np.argmax((together != together[:, :1]).reshape(-1)))
            lane = place if lanes is None else int(lanes[place])
            raise SimulatorError(
                f"threads of a warpgroup give `{instruction.text.split()[0]}` different values of {what}",
                reason="All 128 threads must pass the same: compute it from what they have in common, such as "
                "threadIdx.x / 128.",
                **self.chunk.where(instruction, lane),
            )
        return together[:, 0]

    def _operand(self, instruction, site, name: str, descriptor, rows: int, item: int, first, lanes) -> np.ndarray:
        """Read an operand that descriptors lead to: (warpgroups, rows, k), unsigned integers."""
        chunk, transposed = self.chunk, instruction.transposed["AB".index(name)]
        fields = unpack(np.ascontiguousarray(self._same(instruction, f"{name}'s descriptor", descriptor, first, lanes)))
        own = chunk.block_of[first] * chunk.shared_stride
        fields = fields._replace(start=own + (fields.start - own) % ADDRESS_BYTES)
        reader = repeated(first, pieces := rows * DEPTH_BYTES // CHUNK_BYTES)

        def make() -> tuple[Addresses, np.ndarray, tuple[int, ...]]:
            places = chunk_addresses(fields, rows, item, transposed)
            return Addresses(fixed(places.reshape(-1).view(np.uint64))), fixed(self.of_lane[reader]), places.shape

        form = rows, item, transposed, chunk.threads, chunk.shared_stride
        key = *form, first.tobytes(), *(field.tobytes() for field in fields)
        addresses, warpgroup, shape = recurring(key, reader.shape[0], make)
        for swizzle in np.unique(fields.swizzle) if chunk.observers.operand else ():
            some = np.repeat(fields.swizzle == swizzle, pieces)
            those = (addresses, reader) if some.all() else (Addresses(addresses.base[some]), reader[some])
            for notify in chunk.observers.operand:
                notify(site, name, *those, SWIZZLES[swizzle])
        self._notify_read(site, addresses, reader)
        data = self._bytes(site, addresses)
        self.reading.append(_Reading(site, addresses, reader, warpgroup, self.committed[warpgroup], data))
        return elements(data.view(np.uint8).reshape(*shape, -1), item, transposed)

    @staticmethod
    def _from_registers(registers, kind: str, warpgroups: int) -> np.ndarray:
        """Return A, of shape (warpgroups, 64, k), from the registers that hold it."""
        fragment, item = register_fragment(kind), BITS[kind] // 8
        together = np.empty((THREADS * warpgroups, len(registers)), np.uint32)
        for k, register in enumerate(registers):
            together[:, k] = register
        held = together.view(f"u{item}").reshape(WARPS * warpgroups, WARP_SIZE, -1)
        rows = np.empty((WARPS * warpgroups, fragment.rows, fragment.columns), held.dtype)
        rows[:, fragment.row, fragment.column] = held
        return rows.reshape(warpgroups, ROWS, DEPTH_BYTES // item)

    # Thread t of a warpgroup holds of D, in element j, row 16 · (t / 32) + 8 · (j / 2 % 2) + t % 32 / 4 and column
    # 8 · (j / 4) + 2 · (t % 4) + j % 2: of an array (j / 4, j / 2 % 2, j % 2, warpgroup, warp, row % 8, t % 4).

    @staticmethod
    def _from_sums(instruction: WarpgroupProduct, registers, warpgroups: int) -> np.ndarray:
        """Return C, of shape (warpgroups, 64, n), from the registers of the threads."""
        item, columns = instruction.sum_bytes, instruction.shape.n
        together = np.empty((len(registers), THREADS * warpgroups), np.uint32)
        for k, register in enumerate(registers):
            together[k] = register
        parts: np.ndarray
        if item == 2:
            parts = together.view(np.uint16).reshape(columns // 8, 2, warpgroups, WARPS, 8, 4, 2)
            parts = parts.transpose(2, 3, 1, 4, 0, 5, 6)
        else:
            parts = together.reshape(columns // 8, 2, 2, warpgroups, WARPS, 8, 4).transpose(3, 4, 1, 5, 0, 6, 2)
        return parts.reshape(warpgroups, ROWS, columns)

    @staticmethod
    def _to_sums(d: np.ndarray, warpgroups: int) -> list[np.ndarray]:
        """Return the registers, uint32, from D of shape (warpgroups, 64, n)."""
        columns = d.shape[2]
        parts = d.reshape(warpgroups, WARPS, 2, 8, columns // 8, 4, 2)
        order = (4, 2, 0, 1, 3, 5, 6) if d.itemsize == 2 else (4, 2, 6, 0, 1, 3, 5)
        held = np.ascontiguousarray(parts.transpose(order)).reshape(-1).view(np.uint32)
        return list(held.reshape(-1, THREADS * warpgroups))

    # -- registers -------------------------------------------------------------------------------------------------

    def refuse(self, fault: Any, lanes: np.ndarray | None) -> None:
        """Refuse an access to registers of a product that `warpgroup_registers` objects to. Raises
        SimulatorError, unless that concerns products under way and these lanes have none."""
        if not self.chunk.checked:
            return
        every = self.chunk.all_lanes if lanes is None else lanes
        bad = np.ones(every.shape, bool)
        if fault.under_way:
            warpgroup = self.of_lane[every]
            bad = self.issued[warpgroup] >= self.done[warpgroup]
        if bad.any():
            raise UnorderedRegisters(
                fault.what, reason=fault.reason, **self.chunk.where(fault, int(every[int(np.argmax(bad))]))
            )
