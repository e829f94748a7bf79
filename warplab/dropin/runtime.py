"""What the drop-ins say of streams, events and the device. The simulator runs each call to its end before the next."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from warplab import simulator
from warplab.compilers import DEFAULT_ARCH
from warplab.simulator.counters import WARP_SIZE
from warplab.simulator.device import MAX_BLOCK, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS

NAME = "PTX simulator"
COMPUTE_CAPABILITY = divmod(DEFAULT_ARCH, 10)


def elapsed_time(*_) -> float:
    raise RuntimeError(
        "there is no GPU here and the simulator's own speed says nothing about one, so events give no times. "
        "Count with `with warplab.profile() as p:`; warplab.predict(p) estimates a card's time"
    )


class MemoryInfo(NamedTuple):
    """Bytes of the simulated device's memory."""

    free: int
    total: int


def memory_info() -> MemoryInfo:
    memory = simulator.default_device().memory
    return MemoryInfo(memory.memory_bytes - memory.used_bytes, memory.memory_bytes)


class Stream:
    """A stream of numba.cuda. Work in it is done when the call returns."""

    handle = 0

    def synchronize(self) -> None:
        pass

    @contextlib.contextmanager
    def auto_synchronize(self):
        yield self

    def __repr__(self) -> str:
        return "<stream of the PTX simulator>"


class Event:
    """An event of numba.cuda. It orders work; it has no time."""

    def record(self, stream=0) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait(self, stream=0) -> None:
        pass

    def query(self) -> bool:
        return True

    elapsed_time = elapsed_time


class SimulatedDevice:
    """The device of numba.cuda: the limits that the simulator applies, those of compute capability 9.0."""

    id = 0
    name = NAME
    compute_capability = COMPUTE_CAPABILITY
    WARP_SIZE = WARP_SIZE
    MAX_THREADS_PER_BLOCK = MAX_THREADS
    MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z = MAX_BLOCK
    MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z = MAX_GRID
    MAX_SHARED_MEMORY_PER_BLOCK = 48 * 1024
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = MAX_SHARED_BYTES
    MULTIPROCESSOR_COUNT = 1  # the simulator runs thread blocks as one multiprocessor would, in order

    def __repr__(self) -> str:
        return f"<CUDA device 0 '{NAME}'>"

    def __getattr__(self, name: str):
        raise AttributeError(f"the {NAME} does not know the device attribute {name}; a GPU does")

    def reset(self) -> None:
        pass


class Context:
    """The context of numba.cuda."""

    device = SimulatedDevice()

    def get_memory_info(self) -> MemoryInfo:
        return memory_info()

    def synchronize(self) -> None:
        pass

    def reset(self) -> None:
        pass
