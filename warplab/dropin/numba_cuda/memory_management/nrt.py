"""`rtsys`: how often kernels allocate and free (`config.CUDA_ENABLE_NRT`), counted by Numba's own code, nrt.cu.

The code of a kernel that allocates holds a pointer to the counters, in the layout of numba.cuda's `memsys.cuh`: a flag
in the first of five 64-bit words, then one word each for allocations, frees, and those of Numba's descriptors.
"""

from typing import NamedTuple

import numpy as np

from warplab import simulator
from warplab.compile.numba_internals import config
from warplab.launch.device_arrays import DeviceArray

_POINTER = "TheMSys"  # Numba's name of the variable


class Statistics(NamedTuple):
    """How often kernels allocated and freed: memory, and Numba's descriptors of it."""

    alloc: int
    free: int
    mi_alloc: int
    mi_free: int


_COUNTERS = Statistics._fields


class Runtime:
    """The counters of allocations in kernels. They are off until they are enabled."""

    def __init__(self) -> None:
        self._words: DeviceArray | None = None

    def close(self) -> None:
        self._words = None

    def initialize(self, stream=None) -> None:
        """Set all counters to 0; they count from now on if `config.CUDA_NRT_STATS` says so."""
        words = DeviceArray._allocate(1 + len(_COUNTERS), np.uint64)
        words._write(..., [bool(config.CUDA_NRT_STATS), *(0 for _ in _COUNTERS)])
        self._words = words

    def ensure_initialized(self, stream=None) -> None:
        if self._words is None:
            self.initialize()

    def memsys_enable_stats(self, stream=None) -> None:
        self._memory()._write(0, 1)

    def memsys_disable_stats(self, stream=None) -> None:
        self._memory()._write(0, 0)

    def memsys_stats_enabled(self, stream=None) -> bool:
        return bool(self._memory()._view[0])

    def get_allocation_stats(self, stream=None) -> Statistics:
        """Return how often kernels allocated and freed. Raises RuntimeError where that was not counted."""
        words = self._memory()._view
        if not words[0]:
            raise RuntimeError("NRT stats are disabled.")
        return Statistics(*words[1:].tolist())

    def memsys_get_stats_alloc(self, stream=None) -> int:
        return self.get_allocation_stats().alloc

    def memsys_get_stats_free(self, stream=None) -> int:
        return self.get_allocation_stats().free

    def memsys_get_stats_mi_alloc(self, stream=None) -> int:
        return self.get_allocation_stats().mi_alloc

    def memsys_get_stats_mi_free(self, stream=None) -> int:
        return self.get_allocation_stats().mi_free

    def count(self, entry: simulator.Entry) -> None:
        """Let the kernel `entry`, about to be launched, use the counters, if it allocates and they are wanted."""
        if _POINTER not in entry.program.variables or not config.CUDA_NRT_STATS:
            return
        device = simulator.default_device()
        address = device.variable_address(entry.program, _POINTER)
        device.memory.view(address, 8).view(np.uint64)[0] = self._memory()._address

    def _memory(self) -> DeviceArray:
        self.ensure_initialized()
        assert self._words is not None
        return self._words


rtsys = Runtime()
