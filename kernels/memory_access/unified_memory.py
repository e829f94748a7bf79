"""Unified Memory: what it costs when a kernel first touches pages that the host has written.

128 MiB of managed memory, written by the host and then read by a kernel: with pages that migrate when the kernel
faults on them, with a prefetch before the kernel, and against an explicit copy. It runs in a process of its own with
a time limit, so that a machine whose driver cannot migrate pages loses only this measurement.
"""

import ctypes
import time
from collections.abc import Callable
from typing import Any

from warpcourse.bench import timing
from warpcourse.processes import isolated_call

_ELEMENTS = 2**25
_RUNS = 7
_LIMIT = 90  # seconds
# Values of enum cudaDeviceAttr in CUDA's driver_types.h.
_ATTRIBUTES = {"managed_memory": 83, "pageable_memory_access": 88, "concurrent_managed_access": 89}


def unified_memory() -> dict[str, Any]:
    """Return medians in seconds of `rows`, each a way to bring 128 MiB from the host to a kernel that sums them.

    `move_seconds`: the copy or the prefetch; `kernel_seconds`: the kernel after it. `host_read_seconds`: NumPy's sum
    of the array on the host after the kernel, so with pages that migrate back. Attributes of the device by name.
    """
    timing.require_gpu("This measurement")
    return isolated_call.call(f"{__name__}:measure", limit=_LIMIT)


def measure() -> dict[str, Any]:
    """Return the measurement itself, in this process."""
    import cupy
    import cupyx
    import numpy as np

    from kernels.memory_access.summing import SUMS

    runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream()
    attributes = {name: runtime.deviceGetAttribute(number, 0) for name, number in _ATTRIBUTES.items()}
    nbytes = 4 * _ELEMENTS
    memory = cupy.cuda.malloc_managed(nbytes)
    managed = cupy.ndarray(_ELEMENTS, np.float32, memory)
    on_host = np.ctypeslib.as_array((ctypes.c_float * _ELEMENTS).from_address(memory.ptr))
    plain, pinned = np.empty(_ELEMENTS, np.float32), cupyx.empty_pinned(_ELEMENTS, np.float32)
    device = cupy.empty(_ELEMENTS, np.float32)
    out = cupy.empty(1, np.float32)
    kernel = SUMS["cuda_float4"]

    def copy(source: np.ndarray) -> None:
        runtime.memcpyAsync(device.data.ptr, source.ctypes.data, nbytes, runtime.memcpyHostToDevice, stream.ptr)

    def prefetch() -> None:
        runtime.memPrefetchAsync(memory.ptr, nbytes, cupy.cuda.Device().id, stream.ptr)

    def timed(function: Callable[[], Any]) -> float:
        stream.synchronize()
        start = time.perf_counter()
        function()
        stream.synchronize()
        return time.perf_counter() - start

    def run(source: np.ndarray, move: Callable[[], Any] | None, read: Any) -> dict[str, float]:
        samples = []
        for k in range(_RUNS + 1):  # the first compiles and is left out
            source[:] = 0
            source[k::8] = 1  # the sum is exact in any order
            moved = timed(move) if move is not None else 0.0
            passes = kernel.passes(read, out)
            launched = timed(lambda passes=passes: kernel.queue(passes, lambda: out.fill(0)))
            if float(out[0]) != _ELEMENTS // 8:
                raise AssertionError(f"the GPU's sum is {float(out[0])}; {_ELEMENTS // 8} was expected")
            start = time.perf_counter()
            source.sum()
            samples.append((moved, launched, time.perf_counter() - start))
        moved, launched, read_back = np.median(samples[1:], axis=0)
        return {"move_seconds": moved, "kernel_seconds": launched, "host_read_seconds": read_back}

    rows = {
        "managed, faults": run(on_host, None, managed),
        "managed, prefetch": run(on_host, prefetch, managed),
        "copy, pageable": run(plain, lambda: copy(plain), device),
        "copy, pinned": run(pinned, lambda: copy(pinned), device),
    }
    return {"bytes": nbytes, **attributes, "rows": [{"way": way, **row} for way, row in rows.items()]}
