"""Loads and stores of a group of lanes: where they go, who is told, and the gather or scatter itself."""

import functools
from collections.abc import Callable, Iterator

import numpy as np

from warplab.simulator.errors import UnsupportedInstruction
from warplab.simulator.memory.address_patterns import FEWEST, Pattern
from warplab.simulator.memory.device_memory import ORIGIN, WINDOW_LOCAL, WINDOW_SHARED, Allocation, DeviceMemory
from warplab.simulator.memory.lane_groups import Group, subgroup

_FULL = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}


class Addresses:
    """The base addresses of one value for the lanes of a group. What is computed about them serves all accesses of the
    block that use the same base with another offset."""

    def __init__(self, base: np.ndarray, warps: int = 0) -> None:
        """Take `base`, uint64, one per lane or one for all. `warps`: of how many full warps the lanes consist; 0 to
        look for no pattern."""
        self.base = base
        self._warps = warps if base.shape[0] > 1 and warps >= FEWEST else 0
        self._relative: tuple[int, int] | None = None
        self._ordered: np.ndarray | None = None
        self._distinct: int | None = None
        self._indices: dict[int, np.ndarray] = {}
        self._sectors: dict[int, int] = {}
        self._wavefronts: dict[tuple[int, int, str], tuple[int, int]] = {}

    @functools.cached_property
    def pattern(self) -> Pattern | None:
        """Return what all warps have in common; None if nothing."""
        return Pattern.of(self.base, self._warps) if self._warps else None

    def like(self, base: np.ndarray) -> "Addresses":
        """Return other addresses of the same lanes."""
        return Addresses(base, self._warps)

    @functools.cached_property
    def low(self) -> int:
        return self._over_all("low", np.min)

    @functools.cached_property
    def high(self) -> int:
        return self._over_all("high", np.max)

    @functools.cached_property
    def bits(self) -> int:
        """Return an integer whose lowest set bit is the lowest that any address has set. Higher bits mean nothing."""
        return self._over_all("bits", np.bitwise_or.reduce)

    def _over_all(self, name: str, reduce: Callable) -> int:
        if self.base.shape[0] == 1:
            return int(self.base[0])
        return int(reduce(self.base)) if self.pattern is None else getattr(self.pattern, name)

    def relative(self, start: np.ndarray) -> tuple[int, int]:
        """Return the lowest and highest distance from the lanes' own start addresses."""
        if self._relative is None:
            distance = (self.base - start).view(np.int64)
            self._relative = int(distance.min()), int(distance.max())
        return self._relative

    def at(self, offset: int) -> np.ndarray:
        """Return the addresses of an access, uint64."""
        return self.base + (offset & 0xFFFFFFFFFFFFFFFF) if offset else self.base

    def index(self, view: np.ndarray, item: int, offset: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a view and the numbers of the elements in it that accesses at `offset` touch."""
        if self.bits & (item - 1) or offset & (item - 1) or self.high >> 63:  # a base below the memory
            return view, ((self.at(offset) & np.uint64(ORIGIN - 1)) // item).view(np.int64)
        indices = self.items(item)
        if offset >= 0:
            return view[offset // item :], indices
        return view, indices + offset // item

    def items(self, item: int) -> np.ndarray:
        """Return numbers, from the start of memory, of the elements of `item` bytes at aligned base addresses.

        Addresses in shared and local memory are below ORIGIN as they are.
        """
        indices = self._indices.get(item)
        if indices is None:
            shift = item.bit_length() - 1
            if self.base.shape[0] == 1:
                indices = np.array([(self.low & (ORIGIN - 1)) >> shift])
            elif self.pattern is not None:
                indices = self.pattern.items(shift)
            else:
                indices = (self.base.view(np.int64) & (ORIGIN - 1)) >> shift
            self._indices[item] = indices
        return indices

    def units(self, offset: int, size: int) -> np.ndarray:
        """Return in which `size` bytes of shared memory accesses at `offset` begin."""
        return self.at(offset).view(np.int64) // size if offset else self.items(size)

    def _in_order(self, group) -> np.ndarray:
        """Return distances from the start of a sector, sorted within each warp."""
        if self._ordered is None:
            self._ordered = group.ordered(self.base.view(np.int64) - (self.low & ~31))
        return self._ordered

    def distinct(self, group) -> int:
        """Return distinct addresses in each warp, summed over warps."""
        if self._distinct is None:
            if self.base.shape[0] == 1:
                self._distinct = group.warps
            else:
                self._distinct = self.pattern.distinct() if self.pattern else group.distinct(self._in_order(group))
        return self._distinct

    def sectors(self, offset: int, group) -> int:
        """Return distinct 32-byte sectors, summed over warps, of accesses that do not cross a sector."""
        phase = offset & 31
        if phase not in self._sectors:
            if self.base.shape[0] == 1:
                self._sectors[phase] = group.warps
            elif self.pattern is not None:
                self._sectors[phase] = self.pattern.sectors(phase)
            else:
                self._sectors[phase] = group.distinct((self._in_order(group) + phase) >> 5)
        return self._sectors[phase]

    def atomic_sectors(self, offset: int, group, together: bool) -> int:
        """Count like `sectors`, for atomic operations. `together`: one lane adds the sum of those with its address."""
        if self.base.shape[0] == 1:
            return group.warps if together else group.count
        return group.atomic_sectors(self.at(offset).view(np.int64))

    def wavefronts(self, offset: int, width: int, group, op: str) -> tuple[int, int]:
        """Return passes through the banks of shared memory, summed over warps, and those without conflicts.

        Shifting all lanes by whole words changes nothing.
        """
        key = (offset & 3, width, op)
        found = self._wavefronts.get(key)
        if found is None and self.pattern is not None:
            found = self.pattern.wavefronts(offset & 3, width, op)
        if found is None:
            below = self.high >> 63  # bases below the memory, to which `offset` adds: negative, so not shifted
            words = self.at(offset if below else offset & 3).view(np.int64) >> 2
            found = group.bank_passes(words, -(-width // 4), op)
        self._wavefronts[key] = found
        return found


class SeveralSpaces(UnsupportedInstruction):
    """One access goes to several memory spaces: loads and stores are made in one after the other."""


class Accessor:
    """Memory as the lanes of one chunk see it. The observers of the chunk are told of each access."""

    def __init__(self, memory: DeviceMemory, shared_bytes: int, local_bytes: int, chunk) -> None:
        self.memory, self.chunk = memory, chunk
        self.shared = _Arrays(chunk.blocks * shared_bytes)
        self.local = _Arrays(chunk.lanes * local_bytes)
        self.views = {"global": memory.views, "const": memory.views, "shared": self.shared.views}
        self.views["local"] = self.local.views
        self._latest: dict[int, Allocation] = chunk.launch.latest

    def free(self) -> None:
        """Give back shared and local memory."""
        for arrays in (self.shared, self.local):
            arrays.views.clear()
            arrays.forget()

    def clear_shared(self, offset: int, nbytes: int) -> None:
        """Mark bytes of each block's shared memory, which are zeros, as written."""
        for block in range(self.chunk.blocks):
            start = block * self.chunk.shared_stride + offset
            self.shared.written[1][start : start + nbytes] = _FULL[1]

    # -- where an access goes --------------------------------------------------------------------------------------

    def resolve(self, site, addresses: Addresses) -> tuple[str, Addresses]:
        """Return the space of an access and its addresses there. Raises UnsupportedInstruction for several spaces."""
        if site.space != "generic":
            return site.space, addresses
        low, high = addresses.low + site.offset, addresses.high + site.offset  # the register may lie outside
        if high < WINDOW_SHARED or low >= 2 * WINDOW_LOCAL:
            return "global", addresses
        for space, window in (("shared", WINDOW_SHARED), ("local", WINDOW_LOCAL)):
            if window <= low and high < 2 * window:
                return space, addresses.like(addresses.base - np.uint64(window))
        raise SeveralSpaces(f"one access to several memory spaces at once: `{site.text}`")

    def _one_by_one(self, site, addresses: Addresses, lanes) -> Iterator[tuple[np.ndarray, Addresses, np.ndarray]]:
        """Yield which lanes access each memory space, their addresses and numbers; meanwhile they are the group."""
        base, everyone, group = addresses.base, self.chunk.all_lanes if lanes is None else lanes, self.chunk.group
        there = addresses.at(site.offset)
        spaces = (there >= WINDOW_SHARED).astype(np.int8) + (there >= WINDOW_LOCAL) + (there >= 2 * WINDOW_LOCAL)
        try:
            for space in np.unique(spaces):
                chosen = spaces == space
                self.chunk.group = Group(self.chunk, everyone[chosen])
                yield chosen, Addresses(base[chosen]), everyone[chosen]
        finally:
            self.chunk.group = group

    def allocation(self, site, addresses: Addresses) -> Allocation | None:
        """Return the allocation of global memory that holds the accesses of all lanes; None if no single one does."""
        low, high = addresses.low + site.offset, addresses.high + site.offset + site.width
        allocation = self._latest.get(site.index)
        if allocation is None or low < allocation.address or high > allocation.end:
            allocation = self.memory.find(low) if low >= 0 else None
            if allocation is None or high > allocation.end:
                return None
            self._latest[site.index] = allocation
        return allocation

    def latest(self, site) -> Allocation | None:
        """Return where the latest access of a site of global memory lay; None if that is not known."""
        return self._latest.get(site.index)

    def strayed(self, site, address: int) -> bool:
        """Note where an access lies, and tell whether that is in another allocation than the latest one's."""
        allocation = self.memory.find(address) if address >= 0 else None
        if allocation is None or allocation is self._latest.get(site.index):
            return False
        self._latest[site.index] = allocation
        return True

    def forget_allocations(self) -> None:
        """Look allocations up again, as one has been freed."""
        self._latest.clear()

    def elements(self, site, space: str, addresses: Addresses) -> tuple[np.ndarray, np.ndarray]:
        """Return the view of a space that an access goes to, and the lanes' elements in it."""
        return addresses.index(self.views[space][site.dtype], site.item, site.offset)

    # -- loads and stores ------------------------------------------------------------------------------------------

    def load(self, site, addresses: Addresses, lanes) -> np.ndarray:
        """Return the value of each lane, dtype `site.dtype`; a single entry if all lanes read one address."""
        return self.load_vector(site, addresses, lanes)[0]

    def load_vector(self, site, addresses: Addresses, lanes) -> list[np.ndarray]:
        try:
            view, index = self._reach(site, addresses, lanes)
        except SeveralSpaces:
            merged = [np.empty(addresses.base.shape, site.dtype) for _ in range(site.count)]
            for chosen, there, those in self._one_by_one(site, addresses, lanes):
                for whole, part in zip(merged, self.load_vector(site, there, those), strict=True):
                    whole[chosen] = part
            return merged
        values = [view[k:].take(index) for k in range(site.count)]
        if self.chunk.observers.loaded:
            self._after_load(site, addresses, lanes, values)
        return values

    def store(self, site, addresses: Addresses, value: np.ndarray, lanes) -> None:
        """Write each lane's value; where lanes share an address, the last lane's stays."""
        self.store_vector(site, addresses, (value,), lanes)

    def store_vector(self, site, addresses: Addresses, values, lanes) -> None:
        try:
            view, index = self._reach(site, addresses, lanes, values)
        except SeveralSpaces:
            for chosen, there, those in self._one_by_one(site, addresses, lanes):
                parts = [value if value.shape[0] == 1 else value[chosen] for value in values]
                self.store_vector(site, there, parts, those)
            return
        for k, value in enumerate(values):
            view[k:][index] = value if value.shape[0] == 1 or index.shape[0] > 1 else value[-1:]
        if self.chunk.observers.stored:
            space, addresses = self.resolve(site, addresses)
            for notify in self.chunk.observers.stored:
                notify(site, space, addresses, lanes)

    def store_zeros(self, site, addresses: Addresses, sizes: np.ndarray, lanes) -> None:
        """Write zeros over `sizes` bytes from each lane's address on (st.bulk), 8 bytes at a time."""
        every = self.chunk.all_lanes if lanes is None else lanes
        base, sizes = (np.broadcast_to(x, every.shape) for x in (addresses.base, sizes))
        wrong = (sizes % np.uint64(8) != 0) | (sizes > self.chunk.access.shared.nbytes)
        if wrong.any():
            place = int(np.argmax(wrong))
            what = f"`{site.text.split()[0]}` of {int(sizes[place]):,} bytes"
            reason = "Its size must be a multiple of 8, and no more than the shared memory that the block has."
            raise self.chunk.error(site, every[place], what, reason)
        for done in range(0, int(sizes.max()), 8):
            writing = sizes > done
            with subgroup(self.chunk, every[writing]):
                there = Addresses(base[writing] + np.uint64(done))
                self.store(site, there, np.zeros(1, np.uint64), every[writing])

    def _reach(self, site, addresses: Addresses, lanes, values=None) -> tuple[np.ndarray, np.ndarray]:
        """Tell observers of a load, or a store of `values`, that is about to happen. Returns its `elements`."""
        space, observers = site.space, self.chunk.observers
        if space == "generic":
            space, addresses = self.resolve(site, addresses)
        if values is None:
            for notify in observers.load:
                notify(site, space, addresses, lanes)
        else:
            for notify in observers.store:
                notify(site, space, addresses, lanes, values)
        return addresses.index(self.views[space][site.dtype], site.item, site.offset)

    def _after_load(self, site, addresses: Addresses, lanes, values: list[np.ndarray]) -> None:
        space, addresses = self.resolve(site, addresses)
        for notify in self.chunk.observers.loaded:
            notify(site, space, addresses, lanes, values)


class _Arrays:
    """Shared or local memory of a chunk: views of each dtype, and a record of the bytes written."""

    def __init__(self, nbytes: int) -> None:
        nbytes = -(-nbytes // 16) * 16
        data = np.zeros(nbytes, np.uint8)
        self.nbytes = nbytes
        kinds = ("u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "V16")
        self.views = {kind: data.view(kind) for kind in kinds}
        self._written: dict[int, np.ndarray] | None = None
        self._gap = 0  # a byte that nobody had written when that was last asked
        self.complete = False

    def forget(self) -> None:
        """Drop the record of the bytes written."""
        self._written = None

    @property
    def written(self) -> dict[int, np.ndarray]:
        if self._written is None:
            shadow = np.zeros(self.nbytes, np.uint8)
            self._written = {width: shadow.view(f"u{width}") for width in (1, 2, 4, 8)}
        return self._written

    def all_written(self) -> bool:
        """Tell whether every byte has been written."""
        shadow = self.written[1]
        if self.nbytes and shadow[self._gap]:
            self._gap = int(shadow.argmin())
        return not self.nbytes or bool(shadow[self._gap])


def are_written(record: dict[int, np.ndarray], addresses: Addresses, site) -> np.ndarray:
    """Return, for each lane: were all bytes of its access written?"""
    view, index = addresses.index(record[site.item], site.item, site.offset)
    full = _FULL[site.item]
    result = view.take(index) == full
    for k in range(1, site.count):
        result &= view[k:].take(index) == full
    return result


def mark_written(record: dict[int, np.ndarray], addresses: Addresses, site, mark: int | None = None) -> None:
    """Record that the bytes of an access were written or, with a `mark` of 0, that they were not."""
    full = _FULL[site.item] if mark is None else mark
    view, index = addresses.index(record[site.item], site.item, site.offset)
    for k in range(site.count):
        view[k:][index] = full
