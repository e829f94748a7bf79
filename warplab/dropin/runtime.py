"""What the drop-ins say of streams, events and the device. The simulator runs each call to its end before the next."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from warplab import simulator
from warplab.compile.architecture import DEFAULT_ARCH
from warplab.hardware import occupancy
from warplab.hardware.cards import card
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.run.device import MAX_BLOCK, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS

NAME = "PTX simulator"
COMPUTE_CAPABILITY = divmod(DEFAULT_ARCH, 10)
SHARED_BYTES = 48 * 1024  # of a block that did not ask for more


def elapsed_time(evtstart, evtend) -> float:
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

    def __init__(self, name: str = "stream", handle: int = 0) -> None:
        self._name, self.handle = name, handle

    def __int__(self) -> int:
        return self.handle

    def synchronize(self) -> None:
        pass

    @contextlib.contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        yield self

    def add_callback(self, callback: Callable, arg=None) -> None:
        """Call `callback(stream, status, arg)`: at once, for all work before it is done. A GPU calls it in a thread."""
        callback(self, 0, arg)

    def async_done(self) -> asyncio.Future:
        """An awaitable that is done; its result is the stream."""
        future = asyncio.get_running_loop().create_future()
        future.set_result(self)
        return future

    def __repr__(self) -> str:
        return f"<{self._name} of the PTX simulator>"


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


_CARD = card("H100")  # whose compute capability the simulator has
_LIMITS = occupancy.LIMITS[COMPUTE_CAPABILITY]


class SimulatedDevice:
    """The device of numba.cuda: the limits that the simulator applies, those of compute capability 9.0.

    Also what `cuda.gpus[0]` is: a context manager that makes the device the current one.
    """

    id = 0
    name = NAME
    compute_capability = COMPUTE_CAPABILITY
    COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = COMPUTE_CAPABILITY
    WARP_SIZE = WARP_SIZE
    MAX_THREADS_PER_BLOCK = MAX_THREADS
    MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z = MAX_BLOCK
    MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z = MAX_GRID
    MAX_SHARED_MEMORY_PER_BLOCK = SHARED_BYTES
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = MAX_SHARED_BYTES
    RESERVED_SHARED_MEMORY_PER_BLOCK = _LIMITS.reserved_shared_bytes
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = _CARD.shared_bytes
    MAX_REGISTERS_PER_BLOCK = MAX_REGISTERS_PER_MULTIPROCESSOR = occupancy.REGISTERS
    MAX_THREADS_PER_MULTIPROCESSOR = _CARD.max_threads
    MAX_BLOCKS_PER_MULTIPROCESSOR = _LIMITS.max_blocks
    TOTAL_CONSTANT_MEMORY = 64 * 1024
    MULTIPROCESSOR_COUNT = 1  # the simulator runs thread blocks as one multiprocessor would, in order
    COOPERATIVE_LAUNCH = 0
    CAN_MAP_HOST_MEMORY = MANAGED_MEMORY = UNIFIED_ADDRESSING = INTEGRATED = 1  # one memory holds the arrays of both
    supports_float16 = supports_bfloat16 = supports_fp8 = True

    def __repr__(self) -> str:
        return f"<CUDA device 0 '{NAME}'>"

    def __getattr__(self, name: str):
        raise AttributeError(f"the {NAME} does not know the device attribute {name}; a GPU does")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_) -> None:
        pass

    def get_primary_context(self) -> Context:
        return context

    def reset(self) -> None:
        pass


class DeviceList:
    """`cuda.gpus`: the one simulated device."""

    def __init__(self) -> None:
        self.lst = [SimulatedDevice()]
        self.current = self.lst[0]

    def __getitem__(self, devnum):
        return self.lst[devnum]

    def __iter__(self) -> Iterator[SimulatedDevice]:
        return iter(self.lst)

    def __len__(self) -> int:
        return len(self.lst)

    def __repr__(self) -> str:
        return repr(self.lst)


class Context:
    """The context of numba.cuda."""

    @property
    def device(self) -> SimulatedDevice:
        return devices.current

    def get_memory_info(self) -> MemoryInfo:
        return memory_info()

    def get_default_stream(self) -> Stream:
        return Stream("default stream")

    def create_stream(self) -> Stream:
        return Stream()

    def create_event(self, timing: bool = True) -> Event:
        return Event()

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        yield

    def push(self) -> None:
        pass

    def pop(self) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def reset(self) -> None:
        pass

    def __getattr__(self, name: str):
        raise AttributeError(f"the simulator's context has no {name}: it stands for calls of the driver, not used here")


devices = DeviceList()
context = Context()


def detect() -> bool:
    """Print the devices that kernels can run on; True if there is one."""
    device = devices.current
    print(f"Found {len(devices)} CUDA devices")
    print(f"id {device.id}    {device.name!r:>20} {'[SIMULATED]':>40}")
    for key, value in (
        ("Compute Capability", "{}.{}".format(*device.compute_capability)),
        ("Memory", f"{memory_info().total:,} bytes"),
    ):
        print(f"{key:>40}: {value}")
    print(f"Summary:\n\t{len(devices)}/{len(devices)} devices are supported")
    return True
