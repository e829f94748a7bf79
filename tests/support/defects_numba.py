"""The kernels of `defects` in Numba: each mistake is reported with its Python line.

A host pointer and a barrier with a number have no counterpart, as Numba copies NumPy arrays to the device by itself and
has no barrier but `syncthreads`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numba import float32

from tests.support.defects import Report, floats, ints
from warplab import simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch.simulate import simulate


@dataclass(frozen=True)
class NumbaDefect:
    """`wrong`, `right`: the kernels; `arguments` makes fresh arguments for each launch. `name`: as in `defects`."""

    name: str
    error: type[simulator.SimulatorError]
    report: Report | None
    wrong: Callable
    right: Callable
    arguments: Callable[[], tuple]
    grid: int = 1
    block: int = 64
    right_block: int | None = None
    options: dict = field(default_factory=dict)
    right_options: dict | None = None
    right_arguments: Callable[[], tuple] | None = None

    def run(self, right: bool) -> simulator.LaunchProfile:
        """Launch the mended kernel, or the defective one."""
        arguments = self.right_arguments if right and self.right_arguments else self.arguments
        options = self.right_options if right and self.right_options is not None else self.options
        block = self.right_block if right and self.right_block else self.block
        return simulate(self.right if right else self.wrong, self.grid, block, arguments(), **options)


@cuda.jit
def no_guard(a, c):
    i = cuda.grid(1)
    c[i] = a[i]  # unguarded


@cuda.jit
def guarded(a, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i]


@cuda.jit
def shared_too_far(c, shift):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = t
    cuda.syncthreads()
    c[t] = tile[t + shift]  # too far


@cuda.jit
def shared_in_turn(c, shift):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = t
    cuda.syncthreads()
    c[t] = tile[(t + shift) % 64]


@cuda.jit
def copy(a, c):
    i = cuda.threadIdx.x
    c[i] = a[i]  # copy


@cuda.jit
def half_written(c):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t < 32:
        tile[t] = t
    cuda.syncthreads()
    c[t] = tile[t]  # half


@cuda.jit
def all_written(c):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = t
    cuda.syncthreads()
    c[t] = tile[t]


@cuda.jit
def reversed_at_once(c):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = t  # written
    c[t] = tile[cuda.blockDim.x - 1 - t]  # read


@cuda.jit
def reversed_after_a_barrier(c):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = t
    cuda.syncthreads()
    c[t] = tile[cuda.blockDim.x - 1 - t]


@cuda.jit
def reversed_after_syncwarp(c):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = t
    cuda.syncwarp()
    c[t] = tile[cuda.blockDim.x - 1 - t]


@cuda.jit
def added(total):
    total[0] += 1  # lost


@cuda.jit
def added_atomically(total):
    cuda.atomic.add(total, 0, 1)


@cuda.jit
def from_the_block_before(a, c):
    b = cuda.blockIdx.x
    a[b] = 1  # own
    cuda.syncthreads()
    if b > 0:
        c[b] = a[b - 1]  # before


@cuda.jit
def from_the_own_block(a, c):
    b = cuda.blockIdx.x
    a[b] = 1
    cuda.syncthreads()
    if b > 0:
        c[b] = a[b]


@cuda.jit
def barrier_in_if(c, n):
    t = cuda.threadIdx.x
    if t < n:
        c[t] = 1
        cuda.syncthreads()  # some
        c[t] = 2


@cuda.jit
def barrier_after_if(c, n):
    t = cuda.threadIdx.x
    if t < n:
        c[t] = 1
    cuda.syncthreads()


@cuda.jit
def full_mask(c):
    t = cuda.threadIdx.x
    if t < 16:
        c[t] = cuda.shfl_down_sync(0xFFFFFFFF, t, 1)  # half a warp
    cuda.syncwarp()


@cuda.jit
def half_mask(c):
    t = cuda.threadIdx.x
    if t < 16:
        c[t] = cuda.shfl_xor_sync(0x0000FFFF, t, 1)
    cuda.syncwarp()


@cuda.jit
def no_step(c, step):
    i = cuda.threadIdx.x
    while i < 64:  # endless
        c[i] = i
        i += step


@cuda.jit
def some_step(c, step):
    i = cuda.threadIdx.x
    while i < 64:
        c[i] = i
        i += step + 1


@cuda.jit
def never_released(lock, count):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:  # spins
        pass
    cuda.atomic.add(count, 0, 1)


@cuda.jit
def released(lock, count):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:  # waits
        pass
    cuda.atomic.add(count, 0, 1)
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


@cuda.jit
def both_sides_wait(c):
    t = cuda.threadIdx.x
    if t < 4:
        c[t] = 1
        cuda.syncwarp()  # first side
    else:
        c[t] = 2
        cuda.syncwarp()


@cuda.jit
def one(c):
    c[cuda.threadIdx.x] = 1


def _misaligned() -> tuple:
    return cuda.to_device(np.zeros(260, np.uint8))[1:257].view(np.float32), np.zeros(64, np.float32)


class _Raw:
    """An array at an address, whoever owns it."""

    def __init__(self, address: int, size: int) -> None:
        data = (address, False)
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "<f4", "data": data, "version": 3}


def _freed() -> tuple:
    owner = cuda.to_device(np.zeros(64, np.float32))
    array = cuda.as_cuda_array(_Raw(owner.device_ctypes_pointer.value, 64))
    del owner
    return array, np.zeros(64, np.float32)


_OTHER = {"other_line": "# written", "cause": "Is a __syncthreads() missing between them (or a __syncwarp()"}

DEFECTS = (
    NumbaDefect(
        "access outside an array",
        simulator.IllegalAddress,
        Report("# unguarded", "guard missing", thread=(36, 0, 0), block=(1, 0, 0), array="a", index=100),
        no_guard,
        guarded,
        floats(100, 100),
        grid=2,
    ),
    NumbaDefect(
        "access outside shared memory",
        simulator.IllegalAddress,
        Report("# too far", "index of the shared array", thread=(63, 0, 0), array="tile", index=64),
        shared_too_far,
        shared_in_turn,
        lambda: (*floats(64)(), 1),
    ),
    NumbaDefect(
        "misaligned access",
        simulator.MisalignedAddress,
        Report("# copy", "multiple of 4", array="a", index=0),
        copy,
        copy,
        _misaligned,
        right_arguments=floats(64, 64),
    ),
    NumbaDefect(
        "use after free",
        simulator.IllegalAddress,
        Report("# copy", "Keep the array alive", array="a", index=0),
        copy,
        copy,
        _freed,
        right_arguments=floats(64, 64),
    ),
    NumbaDefect(
        "read of an array that nobody wrote",
        simulator.UninitializedRead,
        Report("# copy", "Fill the array", array="a", index=0),
        copy,
        copy,
        lambda: (cuda.device_array(64, np.float32), np.zeros(64, np.float32)),
        right_arguments=floats(64, 64),
    ),
    NumbaDefect(
        "read of shared memory that nobody wrote",
        simulator.UninitializedRead,
        Report("# half", "store to shared memory", thread=(32, 0, 0), array="tile", index=32),
        half_written,
        all_written,
        floats(64),
    ),
    NumbaDefect(
        "race on shared memory, no __syncthreads",
        simulator.DataRace,
        Report("# read", array="tile", index=63, other_thread=((0, 0, 0), (63, 0, 0)), **_OTHER),
        reversed_at_once,
        reversed_after_a_barrier,
        floats(64),
    ),
    NumbaDefect(
        "race in a warp, no __syncwarp",
        simulator.DataRace,
        Report("# read", array="tile", index=31, other_thread=((0, 0, 0), (31, 0, 0)), **_OTHER),
        reversed_at_once,
        reversed_after_syncwarp,
        floats(32),
        block=32,
    ),
    NumbaDefect(
        "race on global memory",
        simulator.DataRace,
        Report("# lost", "use an atomic", array="total", index=0, other_line="# lost"),
        added,
        added_atomically,
        ints(1),
        grid=2,
    ),
    NumbaDefect(
        "race on global memory between two blocks",
        simulator.DataRace,
        Report(
            "# before",
            "different blocks cannot wait",
            block=(1, 0, 0),
            array="a",
            index=0,
            other_line="# own",
            other_thread=((0, 0, 0), (0, 0, 0)),
        ),
        from_the_block_before,
        from_the_own_block,
        floats(4, 4),
        grid=4,
        block=1,
    ),
    NumbaDefect(
        "barrier that only some threads reach",
        simulator.DivergentBarrier,
        Report("# some", "Every thread of the block must reach", thread=(32, 0, 0)),
        barrier_in_if,
        barrier_after_if,
        lambda: (*floats(64)(), 40),
    ),
    NumbaDefect(
        "shuffle whose mask names lanes that never come",
        simulator.DivergentWarp,
        Report("# half a warp", "compute the mask before the branch"),
        full_mask,
        half_mask,
        ints(32),
        block=32,
    ),
    NumbaDefect(
        "endless loop",
        simulator.InstructionLimit,
        Report("# endless", "Is a step of 0 added"),
        no_step,
        some_step,
        lambda: (*floats(64)(), 0),
        block=1,
        options={"path_limit": 2_000},
    ),
    NumbaDefect(
        "deadlock: a lock that is never released",
        simulator.InstructionLimit,
        Report("# spins", "is a lock never released", thread=(1, 0, 0)),
        never_released,
        released,
        ints(1, 1),
        block=32,
        options={"path_limit": 15_000},
        right_options={},
    ),
    NumbaDefect(
        "deadlock: spin lock with one program counter per warp",
        simulator.InstructionLimit,
        Report("# waits", "With one program counter per warp", thread=(1, 0, 0)),
        released,
        released,
        ints(1, 1),
        block=32,
        options={"scheduling": "pascal", "path_limit": 3_000},
        right_options={"scheduling": "volta"},
    ),
    NumbaDefect(
        "deadlock: sides of a branch that wait for each other, with one program counter per warp",
        simulator.DivergentWarp,
        Report("# first side", "A deadlock: with one program counter"),
        both_sides_wait,
        both_sides_wait,
        ints(32),
        block=32,
        options={"scheduling": "pascal"},
        right_options={"scheduling": "volta"},
    ),
    NumbaDefect(
        "launch that no GPU accepts",
        simulator.InvalidLaunch,
        None,
        one,
        one,
        floats(2048),
        block=2048,
        right_block=1024,
    ),
)
