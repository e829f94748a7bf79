"""Device arrays with room around them, in which the accesses of a kernel that misses its arrays can be seen."""

import numpy as np

from warplab.launch.device_arrays import POISON_BYTE, Buffer, DeviceArray
from warplab.simulator import Device

BAND_ELEMENTS = 8192  # at least, on each side of an array
_ALIGNMENT = 512  # bytes, as of every allocation


class GuardedArray:
    """A device array between two guard bands of its own allocation, filled with a pattern that any write destroys.

    `threads`: of the launch; the bands have room for two elements of each. `number`: of the array in the launch. Each
    array has another pattern: with equal ones the band of c would be that of a * b + c as well.
    """

    def __init__(self, values: np.ndarray, threads: int, number: int, device: Device) -> None:
        self.size, self.itemsize = values.size, values.itemsize
        elements = max(2 * threads, 2 * values.size, BAND_ELEMENTS)
        self._band = -(-elements * self.itemsize // _ALIGNMENT) * _ALIGNMENT
        self._buffer = Buffer(values.nbytes + 2 * self._band, device)
        self._pattern = (POISON_BYTE + number) % 256
        view = np.ndarray(values.shape, values.dtype, self._buffer.bytes, self._band)
        device.memory.mark_initialized(self._buffer.address, self._buffer.nbytes)
        self.array, self._view = DeviceArray(self._buffer, view), view
        self.restore(values)

    def values(self) -> np.ndarray:
        """Return a copy of what the array holds."""
        return self._view.copy()

    def restore(self, values: np.ndarray) -> None:
        """Let the array hold `values` again, and the bands their pattern."""
        self._buffer.bytes[:] = self._pattern
        self._view[...] = values

    def holds(self, address: int) -> bool:
        """Return whether an address is in the array or in its bands."""
        return self._buffer.address <= address < self._buffer.address + self._buffer.nbytes

    def index(self, address: int) -> int:
        """Return the element of the array at an address, negative in front of it."""
        return (address - self._buffer.address - self._band) // self.itemsize

    def crossed(self, addresses: np.ndarray, width: int) -> bool:
        """Return whether an access of `width` bytes at one of `addresses` begins in the array and ends behind it."""
        left = self._buffer.address + self._band + self.size * self.itemsize - addresses.astype(np.int64)
        return bool(((left > 0) & (left < width)).any())

    def written_around(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which elements were written before the array and after it (1-D bool, in the order of addresses)."""
        before, after = self._buffer.bytes[: self._band], self._buffer.bytes[-self._band :]
        return self._written(before), self._written(after)

    def _written(self, band: np.ndarray) -> np.ndarray:
        return (band != self._pattern).reshape(-1, self.itemsize).any(axis=1)
