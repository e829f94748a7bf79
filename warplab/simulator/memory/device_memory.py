"""Device memory: one address space, allocations with gaps between them, and a record of the bytes written.

A device address is `ORIGIN` plus the byte's position in one large anonymous mapping, of which only touched pages take
memory. A second mapping of the same size holds 0xFF for every byte that was ever written.
"""

import bisect
import gc
import mmap
import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from warplab.simulator.memory.texels import Handles

ALIGNMENT = 512  # bytes, as in cudaMalloc
GAP = 1 << 16  # unallocated bytes after each allocation, so that an overrun does not hit a neighbour
# On today's processors host addresses end below 2**48, so no host pointer looks like a device address.
# A process that maps device memory at its own addresses (`warplab.program`) wants them below 2**47.
ORIGIN = 1 << (46 if os.environ.get("WARPLAB_SHARED_ADDRESSES") else 48)
# Where shared and local memory appear in the generic address space, beyond any device address.
WINDOW_SHARED = 1 << 49
WINDOW_LOCAL = 1 << 50
Content = tuple[int, bytes]  # of an allocation: its `host_writes` by then, and its bytes
_PAGE = mmap.PAGESIZE
_FIRST = ORIGIN + (1 << 20)
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


@dataclass(eq=False)
class Allocation:
    """`nbytes` bytes at `address`. `complete`: every byte is known to have been written.

    `name`, `item` (bytes per element, None if unknown) and `origin` (its first byte, which for a slice is not the
    allocation's) belong to the array that the running kernel was given.
    """

    address: int
    nbytes: int
    name: str | None = None
    complete: bool = False
    item: int | None = None
    origin: int = 0
    of_heap: bool = False  # a kernel's own malloc or new
    device: int | None = None  # the number of the device that it belongs to, where several share one address space
    holds_flags: bool = True  # False: volatile and relaxed accesses of several devices race here as others do
    host_writes: int = 0  # how often the host has begun or ended to write here

    @property
    def end(self) -> int:
        return self.address + self.nbytes


class DeviceMemory:
    """`memory_bytes`: how much can be allocated at once. Threads may allocate, free and look up at the same time.

    `file`: the descriptor of an empty file that holds the bytes, for another process to map.
    """

    def __init__(self, memory_bytes: int, *, file: int | None = None) -> None:
        self.memory_bytes = memory_bytes
        self.used_bytes = 0
        size = 4 * memory_bytes
        while True:
            try:
                self._data, self._shadow = _reserve_both(size, file)
                break
            except (OSError, ValueError, MemoryError):  # an address-space limit (ulimit -v)
                gc.collect()  # devices that nobody uses any more, whose launches refer to themselves
                size //= 2
                if size < 1 << 28:
                    raise
        self.size = size
        self._alignment = ALIGNMENT if file is None else _PAGE  # so that an allocation can be protected by itself
        self._given_back = mmap.MADV_DONTNEED if file is None else mmap.MADV_REMOVE
        self.memory_bytes = min(memory_bytes, size // 2)
        data, shadow = np.frombuffer(self._data, np.uint8), np.frombuffer(self._shadow, np.uint8)
        kinds = ("u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "V16")
        self.views = {kind: data.view(kind) for kind in kinds}
        self.written = {width: shadow.view(f"u{width}") for width in (1, 2, 4, 8)}
        self._bytes, self._written_bytes, self._start = data, shadow, data.ctypes.data
        self._next = _FIRST
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []
        self._freed: list[Allocation] = []
        self._lock = threading.Lock()  # of these lists
        self._released: deque[int] = deque()
        self.handles = Handles()  # of textures and surfaces

    # -- allocations ---------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, name: str | None = None, gap: int = GAP, device: int | None = None) -> int:
        """Return the address of `nbytes` new, uninitialised bytes, with `gap` unallocated ones after them.

        `device`: as in `Allocation`. Raises MemoryError when device memory is used up.
        """
        nbytes = int(nbytes)
        if nbytes < 0:
            raise ValueError(f"cannot allocate {nbytes} bytes")
        self._free_released()
        with self._lock:
            if self.used_bytes + nbytes > self.memory_bytes:
                raise MemoryError(
                    f"out of device memory: asked for {nbytes:,} bytes, {self.memory_bytes - self.used_bytes:,} are "
                    f"free of the simulator's {self.memory_bytes:,}. Use smaller arrays or delete some."
                )
            address = self._place(nbytes, gap)
            position = bisect.bisect_left(self._starts, address)
            self._starts.insert(position, address)
            self._allocations.insert(position, Allocation(address, nbytes, name, device=device))
            self.used_bytes += nbytes
        return address

    def _place(self, nbytes: int, gap: int) -> int:
        room = -(-(nbytes + gap) // self._alignment) * self._alignment
        if self._next + room <= ORIGIN + self.size:
            address, self._next = self._next, self._next + room
            return address
        end = _FIRST  # the space is used up: the first hole between allocations that is large enough
        for allocation in [*self._allocations, None]:
            start = ORIGIN + self.size if allocation is None else allocation.address
            if end + room <= start:
                return end
            if allocation is not None:
                end = -(-(allocation.end + GAP) // self._alignment) * self._alignment
        raise MemoryError(f"no {nbytes:,} contiguous bytes are left in the simulator's memory; delete some arrays")

    def free(self, address: int) -> None:
        """Free an allocation. Raises ValueError for an address at which none begins."""
        with self._lock:
            self._free(address)

    def release(self, address: int) -> None:
        """Free an allocation that nothing refers to any more, at the latest before the next one is made.

        Python may call this at any moment, also while this very thread changes the lists.
        """
        self._released.append(address)
        self._free_released()

    def _free_released(self) -> None:
        if self._released and self._lock.acquire(blocking=False):
            try:
                while self._released:
                    self._free(self._released.popleft())
            finally:
                self._lock.release()

    def _free(self, address: int) -> None:
        position = bisect.bisect_left(self._starts, address)
        if position == len(self._starts) or self._starts[position] != address:
            raise ValueError(f"{address:#x} is not the address of an allocation")
        del self._starts[position]
        allocation = self._allocations.pop(position)
        self.used_bytes -= allocation.nbytes
        start, end = address - ORIGIN, allocation.end - ORIGIN
        first, last = -(-start // _PAGE) * _PAGE, end // _PAGE * _PAGE
        for mapping, view, given_back in (
            (self._data, self._bytes, self._given_back),
            (self._shadow, self._written_bytes, mmap.MADV_DONTNEED),
        ):
            if last > first:  # whole pages go back to the system and read as zero again
                mapping.madvise(given_back, first, last - first)
                view[start:first] = 0
                view[last:end] = 0
            else:
                view[start:end] = 0
        self._freed = [*self._freed[-63:], allocation]

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that holds this address."""
        with self._lock:
            position = bisect.bisect_right(self._starts, address) - 1
            if position < 0:
                return None
            allocation = self._allocations[position]
        return allocation if address < max(allocation.end, allocation.address + 1) else None

    def extents(self) -> list[tuple[int, int]]:
        """Return where allocations begin and end, in order."""
        with self._lock:
            return [(one.address, one.end) for one in self._allocations]

    def find_freed(self, address: int) -> Allocation | None:
        """Return the allocation, freed lately, that held this address."""
        return next((a for a in reversed(self._freed) if a.address <= address < a.end), None)

    def nearest(self, address: int) -> Allocation | None:
        """Return the closest allocation that ends before this address or begins after it, within one gap."""
        with self._lock:
            position = bisect.bisect_right(self._starts, address)
            near = self._allocations[max(position - 1, 0) : position + 1]
        distance = {a: max(a.address - address, address - a.end) for a in near}
        best = min(distance, key=lambda allocation: distance[allocation], default=None)
        return best if best is not None and distance[best] < GAP else None

    def inside(self, addresses: np.ndarray, width: int) -> np.ndarray:
        """Return, for each address: do the `width` bytes there lie in one allocation?"""
        with self._lock:
            starts = np.array(self._starts, np.uint64)
            ends = np.array([a.end for a in self._allocations], np.uint64)
        if not starts.size:
            return np.zeros(addresses.shape, bool)
        position = np.searchsorted(starts, addresses, side="right") - 1
        return (position >= 0) & (addresses + np.uint64(width) <= ends[np.maximum(position, 0)])

    # -- bytes ---------------------------------------------------------------------------------------------

    def view(self, address: int, nbytes: int) -> np.ndarray:
        """Return the bytes themselves, as uint8. After writing through the view, call `mark_initialized`."""
        return self._bytes[address - ORIGIN : address - ORIGIN + nbytes]

    def address_of(self, array: np.ndarray) -> int | None:
        """Return the device address of an array of the host that lies in this memory; None for any other."""
        offset = array.__array_interface__["data"][0] - self._start
        return ORIGIN + offset if 0 <= offset < self.size and array.size else None

    def contents(self) -> dict[Allocation, Content]:
        """Return a copy of all bytes, by allocation."""
        with self._lock:
            return {a: (a.host_writes, self.view(a.address, a.nbytes).tobytes()) for a in self._allocations}

    def replace(self, contents: dict[Allocation, Content]) -> None:
        """Put back what `contents` returned, but for what another thread has freed or written since."""
        for allocation, (host_writes, content) in contents.items():
            with self._lock:
                if allocation.host_writes == host_writes and self._is_there(allocation):
                    self.view(allocation.address, len(content))[:] = np.frombuffer(content, np.uint8)

    def same(self, contents: dict[Allocation, Content]) -> bool:
        """Return whether memory holds what `contents` returned, but for what another thread has freed or written."""
        for allocation, (host_writes, content) in contents.items():
            with self._lock:
                known = allocation.host_writes == host_writes and self._is_there(allocation)
                if known and self.view(allocation.address, len(content)).tobytes() != content:
                    return False
        return True

    def _is_there(self, allocation: Allocation) -> bool:
        position = bisect.bisect_left(self._starts, allocation.address)
        return position < len(self._starts) and self._allocations[position] is allocation

    @contextmanager
    def host_write(self, address: int) -> Iterator[None]:
        """Note that the host writes to an allocation inside the block: a launch of another thread must not undo it."""
        allocation = self.find(address)
        try:
            self._note_host_write(allocation)
            yield
        finally:
            self._note_host_write(allocation)

    def _note_host_write(self, allocation: Allocation | None) -> None:
        if allocation is not None:
            with self._lock:
                allocation.host_writes += 1

    def mark_initialized(self, address: int, nbytes: int) -> None:
        """Record that these bytes were written."""
        allocation = self.find(address)
        if allocation is not None and allocation.complete:
            return
        if allocation is not None and nbytes >= allocation.nbytes:
            allocation.complete = True
        else:
            self._written_bytes[address - ORIGIN : address - ORIGIN + nbytes] = 0xFF


def _reserve_both(size: int, file: int | None) -> tuple[mmap.mmap, mmap.mmap]:
    both = _reserve(size, file), _reserve(size)
    _reserve(size).close()  # as much is left to compilers and arrays
    return both


def _reserve(size: int, file: int | None = None) -> mmap.mmap:
    if file is not None:
        os.ftruncate(file, size)
        return mmap.mmap(file, size, flags=mmap.MAP_SHARED | _MAP_NORESERVE)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)


host_processes = ["self"]  # whose memory is the host's; device memory that they have mapped is not


def is_host_address(address: int) -> bool:
    """Return whether this address lies in the memory of this very process, or of another one of `host_processes`."""
    return not ORIGIN <= address < ORIGIN + (1 << 40) and any(_is_in(process, address) for process in host_processes)


def _is_in(process: str, address: int) -> bool:
    try:
        with open(f"/proc/{process}/maps") as maps:
            for line in maps:
                start, _, end = line.split(" ", 1)[0].partition("-")
                if int(start, 16) <= address < int(end, 16):
                    return True
    except OSError:
        pass
    return False


HEAP_BYTES = 8 << 20  # cudaLimitMallocHeapSize, as CUDA sets it
_ALIGNMENT = 16
_GAP = 512  # unallocated bytes after each block; fewer than after arrays, as there may be many blocks


class Heap:
    """The heap of one device: malloc, free, new and delete in kernels. Each block of it is an allocation of its own, so
    that checks know its bounds and whether it was freed. What is not freed stays for later kernels, as on a GPU.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory
        self.blocks: dict[int, Allocation] = {}
        self.used_bytes = 0

    def allocate(self, nbytes: int, name: str) -> int:
        """Return the address of `nbytes` new bytes, 0 if the heap has no room for them."""
        room = _room(nbytes)
        if self.used_bytes + room > HEAP_BYTES:
            return 0
        address = self.memory.allocate(nbytes, name, _GAP)
        self.used_bytes += room
        block = self.memory.find(address)
        assert block is not None
        block.of_heap = True
        self.blocks[address] = block
        return address

    def free(self, address: int) -> None:
        """Free a block. Raises KeyError for an address at which none begins."""
        self.used_bytes -= _room(self.blocks.pop(address).nbytes)
        self.memory.free(address)


def _room(nbytes: int) -> int:
    return max(1, -(-nbytes // _ALIGNMENT)) * _ALIGNMENT
