"""tcgen05 at run time: tensor memory, and what works on it asynchronously. Held to no GPU (see
`tensor_memory_instructions`).

Each block has the 512 columns of a multiprocessor for itself; on a GPU, blocks of one multiprocessor share them, and
tcgen05.alloc waits for those of others. Products, copies from shared memory and shifts are computed when a thread
issues them. Until that thread's tcgen05.commit has reached an mbarrier, and somebody has waited there, what they write
must not be touched but by later ones of the same thread, and what they read must not change. So must what tcgen05.st
writes until its warp has executed tcgen05.wait::st. `warpgroup_registers` looks after the registers of tcgen05.ld.
tcgen05.fence orders nothing that is not in order here, and its absence is not found.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.errors import (
    IllegalAddress,
    SimulatorError,
    UninitializedRead,
    UnorderedTensorMemory,
    UnsupportedInstruction,
    WrongDescriptor,
)
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import subgroup
from warplab.simulator.numerics import tensor_cores
from warplab.simulator.ptx.program import Where
from warplab.simulator.run.late_reads import require_unchanged
from warplab.simulator.translate.block_writer import Site
from warplab.simulator.translate.tensor_memory_instructions import (
    COLUMNS,
    LANES,
    QUARTER,
    SWIZZLES,
    Copy,
    Form,
    TensorProduct,
    Transfer,
    check_descriptor,
    factor_lanes,
    form,
    operand_addresses,
    scale_places,
    sum_places,
    unpacked,
)
from warplab.simulator.translate.warpgroup_instructions import ADDRESS_BYTES, DEPTH_BYTES, elements

_BAND = 16  # lanes that `latest` tells apart
_LEAST_COLUMNS = 32  # of an allocation
_WAIT = (
    "tcgen05 works while the threads go on: the thread that issued it must execute tcgen05.commit, and whoever touches "
    "the columns wait at that mbarrier first."
)
_LOADED = "The warp that loads must execute tcgen05.wait::ld, then arrive at a barrier at which this thread waits."
_STORED = "The warp that stores must execute tcgen05.wait::st before others use what it wrote: wait, then a barrier."


@dataclass(eq=False)
class _Counted:
    """A product as the counters see it."""

    name: str
    where: Where
    text: str
    warps: int = 1
    machine: int = 1


@dataclass(eq=False)
class _Reading:
    """What one instruction reads in shared memory: `address` of pieces of 16 bytes, uint64, the lane that issued it,
    the number of the instruction, and the bytes at the issue as two uint64 each."""

    site: Site
    address: np.ndarray
    lanes: np.ndarray
    number: int
    data: np.ndarray


@dataclass(eq=False)
class _Issued:
    """An instruction that accesses tensor memory: the lane that issued it (of tcgen05.st and ld the first of its warp),
    the accumulator and shape of a product, and, as `check.races` counts, when it was over."""

    lane: int
    name: str
    accumulator: tuple
    stores: bool
    loads: bool
    time: int = 0
    epoch: int = 0


class TensorMemory:
    """Of the blocks of one chunk. Translated code calls it; `lanes` are the group's, None for all of the chunk."""

    def __init__(self, chunk: Any) -> None:
        self.chunk, self._error, self._every = chunk, chunk.error, chunk.every
        self.number = 0  # of instructions issued
        self.reading: list[_Reading] = []
        self.used = False
        self.issued: dict[int, _Issued] = {}
        self.pending: set[int] = set()  # the numbers of those under way

    @functools.cached_property
    def words(self) -> np.ndarray:
        """Return tensor memory: uint32, (blocks, lanes, columns)."""
        self.used = True
        return np.zeros((self.chunk.blocks, LANES, COLUMNS), np.uint32)

    @functools.cached_property
    def written(self) -> np.ndarray:
        return np.zeros(self.words.shape, bool)

    @functools.cached_property
    def owner(self) -> np.ndarray:
        """Return which allocation each column belongs to, by its first column plus 1; 0 for none."""
        self.used = True
        return np.zeros((self.chunk.blocks, COLUMNS), np.int64)

    @functools.cached_property
    def relinquished(self) -> np.ndarray:
        return np.zeros(self.chunk.blocks, bool)

    @functools.cached_property
    def latest(self) -> np.ndarray:
        """Return, for 16 lanes of each column, the number of the latest instruction that wrote there."""
        return np.zeros((self.chunk.blocks, LANES // _BAND, COLUMNS), np.int64)

    @functools.cached_property
    def loaded(self) -> np.ndarray:
        """Return, for 16 lanes of each column, the number of the latest tcgen05.ld or product that read there."""
        return np.zeros_like(self.latest)

    # -- allocation ----------------------------------------------------------------------------------------------------

    def _of_warps(
        self, instruction: Any, values: np.ndarray, lanes: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the first lane of each warp and the value that all its lanes give."""
        self.chunk.matrix.warps(instruction, lanes)
        every = self._every(lanes)
        together = np.broadcast_to(values, every.shape).reshape(-1, WARP_SIZE)
        if self.chunk.checked and (together != together[:, :1]).any():
            place = int(np.argmax(together != together[:, :1]))
            name = instruction.text.split()[0]
            reason = "All 32 must pass the same: an address, or a number of columns, of the warp."
            raise self._error(instruction, every[place], f"lanes of a warp give `{name}` different operands", reason)
        return every[::WARP_SIZE], together[:, 0]

    def allocate(self, site: Site, addresses: Addresses, columns: np.ndarray, lanes: np.ndarray | None) -> None:
        """Execute tcgen05.alloc: write the address of free columns to shared memory."""
        every = self._every(lanes)
        first, places = self._of_warps(site, addresses.base, lanes)
        _, columns = self._of_warps(site, columns, lanes)
        blocks, given = self.chunk.block_of[first], []
        for lane, block, count in zip(first.tolist(), blocks.tolist(), columns.tolist(), strict=True):
            self._check_count(site, lane, count)
            if self.relinquished[block] and self.chunk.checked:
                reason = "Allocate first; give the permit back once the block needs no more."
                raise self._error(site, lane, "tcgen05.alloc after tcgen05.relinquish_alloc_permit", reason)
            free = self.owner[block] == 0
            start = next((k for k in range(0, COLUMNS, _LEAST_COLUMNS) if free[k : k + count].sum() == count), None)
            if start is None:
                reason = (
                    "A GPU would wait until others free theirs, here for ever: a block has 512 columns. Free what is "
                    "not needed any more (tcgen05.dealloc), or use smaller tiles."
                )
                what = f"no {count} columns of tensor memory in a row are free, as the block has {int((~free).sum())}"
                raise self._error(site, lane, what, reason)
            self.owner[block, start : start + count] = start + 1
            self.written[block, :, start : start + count] = False
            given.append(start)
        with subgroup(self.chunk, every[::WARP_SIZE]):
            self.chunk.store(site, Addresses(np.ascontiguousarray(places)), np.array(given, np.uint32), first)

    def _check_count(self, instruction: Any, lane: int, count: int) -> None:
        if count & count - 1 or not _LEAST_COLUMNS <= count <= COLUMNS:
            reason = "Tensor memory is allocated in 32, 64, 128, 256 or 512 columns."
            raise self._error(instruction, lane, f"`{instruction.text.split()[0]}` of {count} columns", reason)

    def free(self, instruction: Any, address: np.ndarray, columns: np.ndarray, lanes: np.ndarray | None) -> None:
        """Execute tcgen05.dealloc."""
        first, address = self._of_warps(instruction, address, lanes)
        _, columns = self._of_warps(instruction, columns, lanes)
        blocks = self.chunk.block_of[first].tolist()
        for lane, block, start, count in zip(first.tolist(), blocks, address.tolist(), columns.tolist(), strict=True):
            self._check_count(instruction, lane, count)
            own = self.owner[block] == start + 1
            if not self.chunk.checked:
                self.owner[block][own] = 0
                continue
            if not own.any():
                what = f"tcgen05.dealloc of columns at {start:#x}, where no allocation of the block begins"
                reason = "Were they freed before? Free each address that tcgen05.alloc gave, once."
                raise self._error(instruction, lane, what, reason)
            if own.sum() != count:
                what = f"tcgen05.dealloc of {count} columns at {start:#x}, where {int(own.sum())} are allocated"
                raise self._error(instruction, lane, what, "Free as many columns as tcgen05.alloc was asked for.")
            self._require_idle(instruction, block, np.arange(LANES), np.flatnonzero(own), range(lane, lane + 1))
            self._require_unread(instruction, block, np.arange(LANES), np.flatnonzero(own), lane)
            self.latest[block, :, own] = 0
            self.owner[block][own] = 0

    def relinquish(self, instruction: Any, lanes: np.ndarray | None) -> None:
        """Execute tcgen05.relinquish_alloc_permit."""
        self.chunk.matrix.warps(instruction, lanes)
        self.relinquished[self.chunk.block_of[self._every(lanes)]] = True

    def finish(self) -> None:
        """Check at the end of the chunk that all is free. Raises SimulatorError."""
        if not self.used or not self.chunk.checked or not self.owner.any():
            return
        block, column = (int(x[0]) for x in np.nonzero(self.owner))
        count = int((self.owner[block] == self.owner[block, column]).sum())
        site = next(i for i in self.chunk.entry.inlined.instructions if "alloc" in i.modifiers)
        what = f"the block ends with {count} columns of tensor memory, from {column:#x}, allocated"
        reason = (
            "Nobody else can have them then: one warp must free them (tcgen05.dealloc) once all are done with them."
        )
        raise self._error(site, block * self.chunk.threads, what, reason)

    # -- checks of accesses --------------------------------------------------------------------------------------------

    def _require(self, instruction: Any, block: int, rows: np.ndarray, columns: np.ndarray, lane: int) -> None:
        """Demand that these lanes and columns exist and are allocated."""
        if rows.max() >= LANES or columns.max() >= COLUMNS:
            what = (
                f"illegal address: `{instruction.text.split()[0]}` reaches lane {int(rows.max())}, column "
                f"{int(columns.max())} of tensor memory, which has {LANES} lanes and {COLUMNS} columns"
            )
            reason = "An address has the lane in bits 16-31 and the column in bits 0-15."
            raise self._error(instruction, lane, what, reason, IllegalAddress)
        bad = self.owner[block, columns] == 0
        if self.chunk.checked and bad.any():
            column = int(columns.reshape(-1)[np.argmax(bad.reshape(-1))])
            what = f"illegal address: column {column} of tensor memory, which the block has not allocated"
            reason = "Was tcgen05.alloc asked for enough columns, and is the address the one it gave? Is it freed?"
            raise self._error(instruction, lane, what, reason, IllegalAddress)

    def _require_idle(
        self,
        instruction: Any,
        block: int,
        rows: np.ndarray,
        columns: np.ndarray,
        lanes: range,
        product: tuple | None = None,
    ) -> None:
        """Demand that the latest writes there are over, and that these lanes know so. Those of the same thread need not
        be if `product` is given: the accumulator and shape of one that adds there, or () of what only reads there."""
        if not self.chunk.checked:
            return
        for number in np.unique(self.latest[self._bands(block, rows, columns)]).tolist():
            if not number:
                continue
            op, name = self.issued[number], instruction.text.split()[0]
            if product is not None and op.lane == lanes[0] and not op.stores:
                if number in self.pending and product and op.accumulator and op.accumulator != product:
                    what = f"`{name}` follows a product of the thread whose sums overlap, in another place or shape"
                    reason = f"Only products with the same accumulator and shape stay in order. {_WAIT}"
                    raise self._error(instruction, lanes[0], what, reason, UnorderedTensorMemory)
            elif number in self.pending:
                what = f"`{name}` at columns where a `{op.name}` may be under way"
                raise self._error(instruction, lanes[0], what, _STORED if op.stores else _WAIT, UnorderedTensorMemory)
            elif not self._known(op, lanes):
                what = f"`{name}` at columns of a `{op.name}`, by threads that do not know that it is over"
                reason = "Wait at the mbarrier" if not op.stores else "Let the warp that stored wait (tcgen05.wait::st)"
                reason += ", or pass a barrier with a thread that has."
                raise self._error(instruction, lanes[0], what, reason, UnorderedTensorMemory)

    def _known(self, op: "_Issued", lanes: range) -> bool:
        """Tell whether the end of `op` comes before what these lanes do now."""
        races, block_of = self.chunk.races, self.chunk.block_of
        of_warp = op.stores or op.loads
        if races is None or (of_warp and self.chunk.warp_of[op.lane] == self.chunk.warp_of[lanes[0]]):
            return True
        if block_of[op.lane] == block_of[lanes[0]] and op.epoch < races.epochs[block_of[op.lane]]:
            return True
        if races.clocks is None:
            return False
        readers, others = np.array(lanes), np.full(len(lanes), op.lane)
        if op.loads:  # any lane of the warp may have arrived
            readers, others = np.repeat(readers, WARP_SIZE), op.lane + np.arange(WARP_SIZE)
        known = races.clocks.knows(readers, others, np.full_like(readers, op.time))
        return bool(known.any() if op.loads else known.all())

    def _require_unread(self, instruction: Any, block: int, rows: np.ndarray, columns: np.ndarray, lane: int) -> None:
        """Demand that reads of it are over, and that the lane that writes or frees it knows so, if not its own."""
        if not self.chunk.checked:
            return
        for number in np.unique(self.loaded[self._bands(block, rows, columns)]).tolist():
            if not number or ((op := self.issued[number]).lane == lane and not op.loads):
                continue
            if number in self.pending or not self._known(op, range(lane, lane + 1)):
                what = f"`{instruction.text.split()[0]}` at columns of a `{op.name}`, by a thread that does not know "
                reason = _LOADED if op.loads else _WAIT
                raise self._error(instruction, lane, f"{what}that it is over", reason, UnorderedTensorMemory)

    @staticmethod
    def _bands(block: int, rows: np.ndarray, columns: np.ndarray) -> tuple:
        return block, np.unique(rows // _BAND)[:, None], np.unique(columns)

    def _over(self, number: int) -> None:
        """Note that an instruction is over."""
        op, races = self.issued[number], self.chunk.races
        self.pending.discard(number)
        if races is not None:
            op.epoch = int(races.epochs[self.chunk.block_of[op.lane]])
            op.time = races.clocks.now if races.clocks is not None else 0

    def _require_written(self, instruction: Any, block: int, rows, columns, lane: int, what: str) -> None:
        if not self.chunk.checked:
            return
        bad = ~self.written[block, rows, columns]
        if bad.any():
            rows, columns = (x[bad][0] for x in np.broadcast_arrays(rows, columns))
            raise self._error(
                instruction,
                lane,
                f"`{instruction.text.split()[0]}` reads {what} in lane {int(rows)}, column {int(columns)} of tensor "
                "memory, which nothing wrote",
                "A first product must not add (enable-input-d false); what is added to, or loaded, must be written.",
                UninitializedRead,
            )

    def _require_read(self, p: TensorProduct, block: int, rows, columns, lane: int, what: str) -> None:
        """Demand that a product may read there."""
        self._require(p, block, rows, columns, lane)
        self._require_idle(p, block, rows, columns, range(lane, lane + 1), ())
        self._require_written(p, block, rows, columns, lane, what)
        self.loaded[self._bands(block, rows, columns)] = self.number

    def _mark(self, instruction: Any, block: int, rows: np.ndarray, columns: np.ndarray, lane: int) -> None:
        """Note that the latest instruction writes there, where nobody may still read."""
        self._require_unread(instruction, block, rows, columns, lane)
        self.latest[self._bands(block, rows, columns)] = self.number

    # -- registers -----------------------------------------------------------------------------------------------------

    def _pieces(
        self, instruction: Any, moved: Transfer, address: np.ndarray, lanes: np.ndarray | None
    ) -> Iterator[tuple[int, int, int, np.ndarray, np.ndarray]]:
        """Yield, for each warp: its number here, its first lane, its block, and the lanes and columns it moves."""
        first, address = self._of_warps(instruction, address, lanes)
        own = (first - self.chunk.block_of[first] * self.chunk.threads) // WARP_SIZE % 4 * QUARTER
        for k, lane in enumerate(first.tolist()):
            row, column, block = int(address[k]) >> 16, int(address[k]) & 0xFFFF, int(self.chunk.block_of[lane])
            if self.chunk.checked and (row % moved.lanes or not own[k] <= row <= own[k] + QUARTER - moved.lanes):
                what = (
                    f"illegal address: `{instruction.text.split()[0]}` at lanes {row} to {row + moved.lanes - 1} of "
                    f"tensor memory by a warp that reaches lanes {own[k]} to {own[k] + QUARTER - 1}"
                )
                reason = (
                    "Warp w reaches lanes 32 (w % 4) to 32 (w % 4) + 31: add (w % 4) << 21 to the address that "
                    "tcgen05.alloc gave."
                )
                raise self._error(instruction, lane, what, reason, IllegalAddress)
            rows, columns = row + moved.lane, column + moved.column
            ends = np.append(columns, columns.max() + moved.packed)
            self._require(instruction, block, rows, ends, lane)
            yield k, lane, block, rows, columns

    def load(
        self, instruction: Any, moved: Transfer, address: np.ndarray, lanes: np.ndarray | None
    ) -> list[np.ndarray]:
        """Execute tcgen05.ld: return the registers."""
        result = np.empty((moved.column.shape[1], self._every(lanes).shape[0]), np.uint32)
        for k, lane, block, rows, columns in self._pieces(instruction, moved, address, lanes):
            these = range(lane, lane + WARP_SIZE)
            self._require_idle(instruction, block, rows, np.append(columns, columns + moved.packed), these)
            self._require_written(instruction, block, rows, columns, lane, "a word")
            if self.chunk.checked:
                self.number += 1
                self._note(lane, instruction, loads=True)
                self.loaded[self._bands(block, rows, np.append(columns, columns + moved.packed))] = self.number
            value = self.words[block, rows, columns]
            if moved.packed:
                value = value & np.uint32(0xFFFF) | self.words[block, rows, columns + 1] << np.uint32(16)
            result[:, WARP_SIZE * k : WARP_SIZE * (k + 1)] = value.T
        return list(result)

    def store(
        self, instruction: Any, moved: Transfer, address: np.ndarray, registers, lanes: np.ndarray | None
    ) -> None:
        """Execute tcgen05.st."""
        every = self._every(lanes)
        values = np.array([np.broadcast_to(register, every.shape) for register in registers])
        for k, lane, block, rows, columns in self._pieces(instruction, moved, address, lanes):
            every_column = np.append(columns, columns + moved.packed)
            self._end_stores(block, rows, every_column, lane)
            self._require_idle(instruction, block, rows, every_column, range(lane, lane + WARP_SIZE))
            value = values[:, WARP_SIZE * k : WARP_SIZE * (k + 1)].T
            if moved.packed:
                self._write(block, rows, columns + 1, value >> np.uint32(16))
                value = value & np.uint32(0xFFFF)
            self._write(block, rows, columns, value)
            self.number += 1
            self._note(lane, instruction, stores=True)
            self._mark(instruction, block, rows, every_column, lane)

    def _end_stores(self, block: int, rows: np.ndarray, columns: np.ndarray, lane: int) -> None:
        """Forget what the warp itself has stored there, and is about to store again."""
        place = self._bands(block, rows, columns)
        own = [n for n in self.pending if self.issued[n].stores and self.issued[n].lane == lane]
        self.latest[place] = np.where(np.isin(self.latest[place], own), 0, self.latest[place])

    def _write(self, block: int, rows: np.ndarray, columns: np.ndarray, value: np.ndarray) -> None:
        self.words[block, rows, columns] = value
        self.written[block, rows, columns] = True

    def wait(self, instruction: Any, stores: bool, lanes: np.ndarray | None) -> None:
        """Execute tcgen05.wait::st, or ::ld, whose registers the translation has examined."""
        self.chunk.matrix.warps(instruction, lanes)
        first = set(self._every(lanes)[::WARP_SIZE].tolist())
        for number in [n for n in self.pending if self.issued[n].lane in first]:
            if self.issued[number].stores if stores else self.issued[number].loads:
                self._over(number)

    # -- what one thread issues ----------------------------------------------------------------------------------------

    def _issue(self, instruction: Any, group: int, lanes: np.ndarray | None) -> Iterator[tuple[int, int, list[int]]]:
        """Yield each issue: the place of its lane among `lanes`, the lane, and its block or pair of blocks."""
        every, chunk = self._every(lanes), self.chunk
        warp = chunk.warp_of[every]
        if chunk.checked and (warp[1:] == warp[:-1]).any():
            place = int(np.argmax(warp[1:] == warp[:-1]))
            name, count = instruction.text.split()[0], int((warp == warp[place]).sum())
            reason = "One thread issues it for all: choose it by elect.sync, or by threadIdx.x == 0."
            raise self._error(instruction, every[place], f"{count} threads of a warp issue `{name}`, each once", reason)
        if group == 2 and chunk.cluster_blocks % 2:
            reason = ".cta_group::2 pairs the blocks 2k and 2k + 1 of a cluster: launch clusters of 2, 4, ... blocks."
            what = f"`{instruction.text.split()[0]}` in clusters of {chunk.cluster_blocks}"
            raise self._error(instruction, every[0], what, reason)
        for place, lane in enumerate(every.tolist()):
            block = int(chunk.block_of[lane])
            pair = [block] if group == 1 else [block & ~1, block | 1]
            self.number += 1
            yield place, lane, pair

    def _note(
        self, lane: int, instruction: Any, accumulator: tuple = (), stores: bool = False, loads: bool = False
    ) -> None:
        self.issued[self.number] = _Issued(lane, instruction.text.split()[0], accumulator, stores, loads)
        self.pending.add(self.number)

    def _wrong(self, instruction: Any, lane: int, what: str, bits: int, error: ValueError) -> SimulatorError:
        text = f"`{instruction.text.split()[0]}`: {what} {bits:#x} is wrong: {error}"
        reason = 'The PTX ISA has the bits under tcgen05, "Instruction descriptor" and "Shared memory descriptor".'
        return self._error(instruction, lane, text, reason, WrongDescriptor)

    def _read(
        self,
        site: Site,
        name: str,
        bits: int,
        block: int,
        rows: int,
        item: int,
        transposed: bool,
        lane: int,
        chunks: int = 2,
    ) -> np.ndarray:
        """Read an operand in shared memory of one block: the bytes of its chunks, of each row the first `chunks`."""
        try:
            check_descriptor(bits, transposed, item)
        except ValueError as error:
            raise self._wrong(site, lane, f"the shared-memory descriptor of {name},", bits, error) from None
        places, start = operand_addresses(np.array([bits], np.uint64), rows, item, transposed)
        chunk = self.chunk
        own = int(chunk.block_of[lane]) * chunk.shared_stride
        places = places + (block * chunk.shared_stride + (start - own) % ADDRESS_BYTES - start)
        if chunks < 2:
            places = places[:, :, :chunks]
        address = places.reshape(-1).view(np.uint64)
        addresses, reader = Addresses(address), np.full(address.shape, lane)
        for notify in chunk.observers.operand:
            notify(site, name, addresses, reader, SWIZZLES[bits >> 61])
        self._notify_read(site, addresses, reader)
        data = self._bytes(site, addresses)
        self.reading.append(_Reading(site, address, reader, self.number, data))
        return data.view(np.uint8).reshape(*places.shape, -1)

    def _notify_read(self, site: Site, addresses: Addresses, lanes: np.ndarray) -> None:
        for notify in self.chunk.observers.copy_read:
            notify(site, "shared", addresses, lanes)

    def _bytes(self, site: Site, addresses: Addresses) -> np.ndarray:
        """Return the 16 bytes at each address, as two uint64."""
        view, index = self.chunk.access.elements(site, "shared", addresses)
        return np.stack([view[k:].take(index) for k in range(2)], axis=-1)

    # -- products ------------------------------------------------------------------------------------------------------

    def product(self, p: TensorProduct, sites, d, a, b, descriptor, scales, disabled, add, lanes) -> None:
        """Execute tcgen05.mma. `d`, `descriptor`, `scales`: uint32 per lane; `a`: uint32, an address, or uint64, a
        descriptor; `disabled`: words of the lanes of D that stay as they are; `add`: whether D counts."""
        count = self._every(lanes).shape[0]
        d, a, b, descriptor, add = (np.broadcast_to(x, (count,)) for x in (d, a, b, descriptor, add))
        scales = [np.broadcast_to(x, (count,)) for x in scales]
        disabled = [np.broadcast_to(x, (count,)) for x in disabled]
        for k, lane, pair in self._issue(p, p.group, lanes):
            try:
                this = form(int(descriptor[k]), p.kind, p.group, p.scales, p.stationary)
            except ValueError as error:
                raise self._wrong(p, lane, "the instruction descriptor", int(descriptor[k]), error) from None
            with subgroup(self.chunk, np.array([lane])):
                for notify in self.chunk.observers.matrix_product:
                    notify(_Counted(this.name, p.where, p.text))
            self._note(lane, p, (int(d[k]), this.m, this.n))
            left = self._factor(p, sites[0], "A", a[k], this, pair, lane)
            right = self._factor(p, sites[1], "B", b[k], this, pair, lane)
            if scales:
                left = left * self._scales(p, int(scales[0][k]), this, 0, pair, lane)
                right = right * self._scales(p, int(scales[1][k]), this, 1, pair, lane)
            masks = np.array([int(word[k]) for word in disabled], np.uint32)
            self._add(p, int(d[k]), this, pair, lane, left, right, bool(add[k]), masks)

    def _factor(self, p: TensorProduct, site: Site, name: str, given: Any, this: Form, pair: list[int], lane: int):
        """Return A or B, (rows of a block, k) of all blocks one after another, as float64 of shape (rows, k)."""
        which = "AB".index(name)
        item, transposed = this.container(which), this.transposed[which]
        rows = (this.m, this.n)[which] // len(pair)
        parts = []
        for block in pair:
            if given.dtype == np.uint32:
                chunks = self._from_tensor_memory(p, int(given), this, block, lane)
                parts.append(unpacked_words(chunks, this))
                continue
            data = self._read(site, name, int(given), block, rows, item, transposed, lane)
            if transposed:
                parts.append(elements(data, item, True)[0])
            else:
                parts.append(unpacked(data.reshape(1, rows, DEPTH_BYTES), this, which)[0])
        values = tensor_cores.decode(np.ascontiguousarray(np.concatenate(parts)), this.kinds[which])
        return -values if this.negated[which] else values

    def _from_tensor_memory(self, p: TensorProduct, address: int, this: Form, block: int, lane: int) -> np.ndarray:
        """Return the 32 bytes of each row of A in tensor memory."""
        if this.transposed[0]:
            error = ValueError("bit 15 says that A is M-major, but in tensor memory it has one row per lane")
            raise self._wrong(p, lane, "the instruction descriptor", 1 << 15, error)
        if this.stationary and this.m < LANES:
            what = f"A of {this.m} rows from tensor memory is not simulated for tcgen05.mma.ws"
            raise self._error(p, lane, what, "Take A from shared memory.", UnsupportedInstruction)
        rows = (address >> 16) + factor_lanes(this.m, p.group)[:, None]
        columns = (address & 0xFFFF) + np.arange(DEPTH_BYTES // 4)
        self._require_read(p, block, rows, columns, lane, "factor A")
        return np.ascontiguousarray(self.words[block, rows, columns]).view(np.uint8)

    def _scales(self, p: TensorProduct, address: int, this: Form, which: int, pair: list[int], lane: int) -> np.ndarray:
        """Return the scale factor of each element of A or B, (rows, k) float64."""
        parts = []
        own = pair if which == 0 else pair[:1]
        for block in own:
            rows, columns = scale_places((this.m, this.n)[which] // len(own))
            columns = columns + (address & 0xFFFF)
            self._require_read(p, block, rows, columns, lane, f"scale factors of {'AB'[which]}")
            held = self.words[block, rows, columns].view(np.uint8).reshape(-1, 4)
            self._check_copies(p, block, rows, columns, lane)
            parts.append(held[:, this.scale_ids[which] : this.scale_ids[which] + p.scales])
        factors = np.abs(tensor_cores.decode(np.ascontiguousarray(np.concatenate(parts)), this.scale_type))
        return np.repeat(factors, this.k // p.scales, axis=1)

    def _check_copies(self, p: TensorProduct, block: int, rows: np.ndarray, columns: np.ndarray, lane: int) -> None:
        """Demand that all four quarters hold the same scale factors."""
        first = self.words[block, rows, columns]
        for quarter in range(1, 4):
            other = self.words[block, rows + QUARTER * quarter, columns]
            if self.chunk.checked and (first != other).any():
                what = f"scale factors differ between lanes 0 to 31 and {QUARTER * quarter} to {QUARTER * quarter + 31}"
                reason = (
                    "All four quarters must hold them: copy with tcgen05.cp.32x128b.warpx4, or store from four warps."
                )
                raise self._error(p, lane, what, reason)

    def _add(self, p: TensorProduct, address: int, this: Form, pair, lane: int, left, right, add: bool, masks) -> None:
        """Compute D of one product, and write it."""
        lanes, columns = sum_places(this.m, this.n, p.group, this.stationary)
        rows, columns = (address >> 16) + lanes, (address & 0xFFFF) + columns
        held = []
        for block in pair:
            self._require(p, block, rows, columns, lane)
            self._require_idle(p, block, rows, columns, range(lane, lane + 1), (address, this.m, this.n))
            if add:
                self._require_written(p, block, rows, columns, lane, "sums")
            held.append(self.words[block, rows, columns])
        c = np.concatenate(held)
        kind = this.kinds[2]
        c = tensor_cores.decode(c.astype(np.uint16) if kind == "f16" else c, kind)[None]
        c = c * 2.0**-p.shift if add else np.zeros_like(c)
        how = this.kinds, this.saturate, self.chunk.matrix.add
        words = tensor_cores.tensor_memory_product(left[None], right[None], c, *how)[0]
        share = words.shape[0] // len(pair)
        for k, block in enumerate(pair):
            value = words[k * share : (k + 1) * share]
            self._mark(p, block, rows, columns, lane)
            kept = np.zeros(LANES, bool)
            if masks.size:
                kept = np.unpackbits(masks[4 * k : 4 * k + 4].view(np.uint8), bitorder="little").astype(bool)
            changed = np.broadcast_to(~kept[rows], value.shape)
            rows_, columns_ = np.broadcast_arrays(rows, columns)
            self._write(block, rows_[changed], columns_[changed], value[changed])

    # -- copies and shifts ---------------------------------------------------------------------------------------------

    def copy(self, site: Site, shape: Copy, group: int, address: np.ndarray, source: np.ndarray, lanes) -> None:
        """Execute tcgen05.cp: shared memory, which descriptors name, to tensor memory, in both blocks of a pair."""
        count = self._every(lanes).shape[0]
        address, source = np.broadcast_to(address, (count,)), np.broadcast_to(source, (count,))
        for k, lane, pair in self._issue(site, group, lanes):
            self._note(lane, site)
            for block in pair:
                data = self._read(site, "the source", int(source[k]), block, shape.rows, 1, False, lane, shape.chunks)
                words = data.reshape(shape.rows, -1).view(np.uint32)
                columns = (int(address[k]) & 0xFFFF) + np.arange(words.shape[1])
                for rows in shape.lanes:
                    rows = ((int(address[k]) >> 16) + rows)[:, None]
                    self._require(site, block, rows, columns, lane)
                    self._require_idle(site, block, rows, columns, range(lane, lane + 1), ())
                    self._mark(site, block, rows, columns, lane)
                    self._write(block, rows, columns, words)

    def shift(self, instruction: Any, group: int, address: np.ndarray, lanes: np.ndarray | None) -> None:
        """Execute tcgen05.shift.down: 32 bytes of each lane move from the lane above, in each quarter but its last."""
        address = np.broadcast_to(address, self._every(lanes).shape)
        for k, lane, pair in self._issue(instruction, group, lanes):
            self._note(lane, instruction)
            columns = (int(address[k]) & 0xFFFF) + np.arange(DEPTH_BYTES // 4)
            rows = np.arange(LANES)[:, None]
            for block in pair:
                self._require(instruction, block, rows, columns, lane)
                self._require_idle(instruction, block, rows, columns, range(lane, lane + 1), ())
                to = rows[rows[:, 0] % QUARTER != QUARTER - 1]
                self._require_written(instruction, block, to + 1, columns, lane, "a lane to move")
                self._mark(instruction, block, rows, columns, lane)
                self._write(block, to, columns, self.words[block, to + 1, columns])

    # -- the end of what is under way ----------------------------------------------------------------------------------

    def commit(self, site: Site, addresses: Addresses, mask: np.ndarray | None, lanes: np.ndarray | None) -> None:
        """Execute tcgen05.commit: an mbarrier hears when all that the thread has issued so far is over."""
        every = self._every(lanes)
        start = np.broadcast_to(addresses.base, every.shape)
        for receiving, shift in self.chunk.copies.receivers(site, start, mask, every):
            there = Addresses(np.ascontiguousarray(start[receiving] + shift))
            with subgroup(self.chunk, every[receiving]):
                self.chunk.mbarriers.arrive_after_products(site, there, self.number, every[receiving])

    def complete(self, lanes: np.ndarray, number: int) -> None:
        """End what these lanes have issued up to instruction `number`."""
        of_threads = {n for n in self.pending if not (self.issued[n].stores or self.issued[n].loads)}
        over = {n for n in of_threads if n <= number and self.issued[n].lane in lanes}
        for n in over:
            self._over(n)
        left = []
        for reading in self.reading:
            if reading.number in over:
                self._end(reading)
            else:
                left.append(reading)
        self.reading = left

    def _end(self, reading: _Reading) -> None:
        """Let the issuing thread know that these operands have been read."""
        addresses = Addresses(reading.address)
        changed = (self._bytes(reading.site, addresses) != reading.data).any(axis=1)
        reader = f"`{reading.site.text.split()[0]}` could still"
        reason = "Whoever writes there must wait until it is over: at the mbarrier of its tcgen05.commit."
        require_unchanged(self.chunk, reading.site, reading.address, reading.lanes, changed, reader, reason)
        self._notify_read(reading.site, addresses, reading.lanes)


def unpacked_words(chunks: np.ndarray, this: Form) -> np.ndarray:
    """Return A of tensor memory, where 4 and 6 bits take a byte each unless two share one."""
    if this.kinds[0] in ("e2m3", "e3m2", "e2m1") and not this.packed:
        return chunks & (15 if this.kinds[0] == "e2m1" else 63)
    return unpacked(chunks[None], this, 0)[0]
