"""cupy.cuda.memory on the simulator: pointers, allocators, and pools that keep nothing.

An array that is given up is freed at once, so a pool never holds free blocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from warplab import simulator as _simulator
from warplab.dropin import simulated_device as _device
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.dropin.cupy.cuda.device import Device
from warplab.launch.device_arrays import BorrowedBuffer, Buffer

OutOfMemoryError = MemoryError


class MemoryPointer(NamedTuple):
    """Address in device memory and the memory that it points into, as `array.data`; adding an int moves it."""

    mem: Buffer
    ptr: int

    def __add__(self, offset: int) -> MemoryPointer:  # type: ignore[override]
        return MemoryPointer(self.mem, self.ptr + offset)

    def __radd__(self, offset: int) -> MemoryPointer:
        return self + offset

    def __sub__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - offset)

    def __int__(self) -> int:
        return self.ptr

    @property
    def device(self) -> Device:
        owner = self.mem.device
        return Device(owner.number, siblings=owner.siblings or (owner,))

    @property
    def device_id(self) -> int:
        return self.mem.device.number


def alloc(size: int) -> MemoryPointer:
    """Allocate `size` bytes of the current device, undefined, by the allocator that was set."""
    return get_allocator()(size)


def malloc_managed(size: int) -> MemoryPointer:
    return _allocate(size)


def _allocate(size: int) -> MemoryPointer:
    buffer = Buffer(int(size))
    return MemoryPointer(buffer, buffer.address)


class UnownedMemory(BorrowedBuffer):
    """Memory that something else owns, for `MemoryPointer(UnownedMemory(address, size, owner), 0)`."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        super().__init__(ptr, size, owner)
        self.ptr, self.size = ptr, size


class MemoryPool:
    """A pool of device memory, which holds nothing: what is given up is freed at once."""

    def __init__(self, allocator: Callable | None = None) -> None:
        self._allocator = _allocate if allocator is None else allocator
        self._limit = 0

    def malloc(self, size: int) -> MemoryPointer:
        if self._limit and self.used_bytes() + size > self._limit:
            raise OutOfMemoryError(
                f"Out of memory allocating {size:,} bytes (allocated so far: {self.used_bytes():,} bytes, limit set "
                f"to: {self._limit:,} bytes)."
            )
        return self._allocator(size)

    def used_bytes(self) -> int:
        return _simulator.default_device().memory.used_bytes

    total_bytes = used_bytes

    def free_bytes(self) -> int:
        return 0

    n_free_blocks = free_bytes

    def free_all_blocks(self, stream=None) -> None:
        """Give back free blocks, of which there are none."""

    free_all_free = free_all_blocks

    def get_limit(self) -> int:
        """Return the limit that was set, in bytes; 0 for none."""
        return self._limit

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Let `malloc` of this pool, but no array of `cupy`, allocate no more than `size` bytes, or a `fraction` of
        the device's."""
        if (size is None) == (fraction is None):
            raise ValueError("size and fraction cannot be specified at one time")
        self._limit = int(_device.memory_info().total * fraction) if fraction is not None else int(size or 0)


_allocators: list[Callable[[int], MemoryPointer]] = [_allocate]


def get_allocator() -> Callable[[int], MemoryPointer]:
    return _allocators[-1]


def set_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> None:
    """Let `cupy.cuda.alloc` use this function. Arrays are placed by the simulator all the same."""
    _allocators[-1] = _allocate if allocator is None else allocator


@contextlib.contextmanager
def using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    """Set the allocator inside the block."""
    _allocators.append(_allocate if allocator is None else allocator)
    try:
        yield
    finally:
        _allocators.pop()


def __getattr__(name: str):
    raise _missing("cupy.cuda.memory", name)
