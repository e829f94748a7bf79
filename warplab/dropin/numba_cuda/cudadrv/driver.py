"""Streams, events, the device and its context. The simulator runs each call to its end before the next."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterator

from warplab import simulator
from warplab.dropin import simulated_device
from warplab.dropin.simulated_device import COMPUTE_CAPABILITY
from warplab.hardware import occupancy
from warplab.hardware.cards import card
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.run.launch_limits import MAX_BLOCK, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS

_DEFAULT_STREAMS = {0: "Default", 1: "Legacy default", 2: "Per-thread default"}  # by the driver's handle
_handles = itertools.count(0x1000)


class Stream:
    """A stream. Work in it is done when the call returns. `handle`: the driver's number; `external`: another library's.

    Without a handle it is a new one.
    """

    def __init__(self, handle: int | None = None, external: bool = False) -> None:
        self.handle = next(_handles) if handle is None else handle
        self.external = external

    def __int__(self) -> int:
        return self.handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def synchronize(self) -> None:
        simulator.default_device().synchronize()

    @contextlib.contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        yield self

    def add_callback(self, callback: Callable, arg=None) -> None:
        """Call `callback(stream, status, arg)` at once, as all earlier work is done. A GPU calls it in a thread."""
        callback(self, 0, arg)

    def async_done(self) -> asyncio.Future:
        """Return an awaitable that is done; its result is the stream."""
        future = asyncio.get_running_loop().create_future()
        future.set_result(self)
        return future

    def __repr__(self) -> str:
        if self.handle in _DEFAULT_STREAMS:
            return f"<{_DEFAULT_STREAMS[self.handle]} CUDA stream>"
        return f"<{'External ' * self.external}CUDA stream {self.handle}>"


class Event:
    """An event. It orders work and has no time: `elapsed_time` returns NaN, with a warning."""

    def record(self, stream=0) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait(self, stream=0) -> None:
        pass

    def query(self) -> bool:
        return True

    elapsed_time = simulated_device.elapsed_time


_CARD = card("H100")  # has the compute capability of the simulator


class Device:
    """The simulated device, which is also a context manager, as `cuda.gpus[0]` is.

    `simulated`: one of those that share an address space (`warplab.virtual_devices`), the current one in the block.
    """

    def __init__(self, simulated: simulator.Device | None = None) -> None:
        self._simulated = simulated
        self.id = 0 if simulated is None else simulated.number

    @property
    def uuid(self) -> str:
        """Return an identifier in the form of a GPU's, which names no GPU."""
        return f"GPU-00000000-0000-0000-0000-{self.id:012x}"

    name = simulated_device.NAME
    compute_capability = COMPUTE_CAPABILITY
    COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = COMPUTE_CAPABILITY
    WARP_SIZE = WARP_SIZE
    MAX_THREADS_PER_BLOCK = MAX_THREADS
    MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z = MAX_BLOCK
    MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z = MAX_GRID
    MAX_SHARED_MEMORY_PER_BLOCK = simulated_device.SHARED_BYTES
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = MAX_SHARED_BYTES
    RESERVED_SHARED_MEMORY_PER_BLOCK = _CARD.reserved_shared_bytes
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = _CARD.shared_bytes
    MAX_REGISTERS_PER_BLOCK = MAX_REGISTERS_PER_MULTIPROCESSOR = occupancy.REGISTERS
    MAX_THREADS_PER_MULTIPROCESSOR = _CARD.max_threads
    MAX_BLOCKS_PER_MULTIPROCESSOR = _CARD.max_blocks
    TOTAL_CONSTANT_MEMORY = 64 * 1024
    MULTIPROCESSOR_COUNT = simulated_device.MULTIPROCESSORS
    COOPERATIVE_LAUNCH = 0
    # Host and device share the memory of an array.
    CAN_MAP_HOST_MEMORY = MANAGED_MEMORY = UNIFIED_ADDRESSING = INTEGRATED = 1
    supports_float16 = supports_bfloat16 = supports_fp8 = True

    def __repr__(self) -> str:
        return f"<CUDA device {self.id} '{self.name}'>"

    def __getattr__(self, name: str):
        raise AttributeError(f"the {self.name} does not know the device attribute {name}; ask a GPU for it")

    def __enter__(self) -> None:
        if self._simulated is not None:
            simulator.push_device(self._simulated)

    def __exit__(self, *_) -> None:
        if self._simulated is not None:
            simulator.pop_device()

    def get_primary_context(self) -> Context:
        return context

    def reset(self) -> None:
        pass


class _Deallocations:
    """What waits to be freed: nothing, as the simulator frees at once."""

    def clear(self) -> None:
        pass

    def __len__(self) -> int:
        return 0


class Context:
    """The context of the simulated device."""

    deallocations = _Deallocations()

    @property
    def device(self) -> Device:
        return device

    def get_memory_info(self) -> simulated_device.MemoryInfo:
        return simulated_device.memory_info()

    def get_default_stream(self) -> Stream:
        return Stream(0)

    def get_legacy_default_stream(self) -> Stream:
        return Stream(1)

    def get_per_thread_default_stream(self) -> Stream:
        return Stream(2)

    def create_stream(self) -> Stream:
        return Stream()

    def create_external_stream(self, ptr: int) -> Stream:
        return Stream(ptr, external=True)

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
        simulator.default_device().synchronize()

    def reset(self) -> None:
        pass

    def __getattr__(self, name: str):
        raise AttributeError(f"the simulator's context has no {name}, which would call the driver; there is none here")


device = Device()
context = Context()
