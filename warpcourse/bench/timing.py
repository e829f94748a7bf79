"""What the benchmarks of all topics share: timing on a GPU, the copy limit, tables, the final line.

How a time is taken: the calls are queued behind a kernel that only waits, so that the GPU runs them back to
back and the host's launch time stays out; every call has its own pair of events; before that, a read of four
times the L2 empties that cache; the result is the median. Candidates that are to be compared take turns, so
that a drift of the clocks reaches all of them, and every second round goes backwards: a candidate that heats
the card slows those after it, which would otherwise always be the same.
"""

import concurrent.futures
import datetime
import functools
import importlib.metadata
import json
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplab.hardware import backend
from warplab.launch.stream_delay import hold_stream
from warplab.text import tables

COPY_BYTES = 2**30
L2_MULTIPLE = 4  # an amount of data that leaves nothing useful in the L2
_UNITS = {"µs": 1e6, "ms": 1e3, "MB": 1e-6, "MiB": 2**-20}  # of seconds and bytes
NO_GPU = 2  # exit code of a benchmark on a machine without a GPU

_READ_ALL = r"""
extern "C" __global__ void read_all(const float4 *data, size_t n, float *sink) {
    float sum = 0;
    const size_t stride = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        sum += data[i].x + data[i].w;
    }
    if (sum == 1.25f) *sink = sum;  // the data are zeros: never true, but the compiler cannot drop the loads
}
"""


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: median, fastest and slowest of `runs` runs."""

    seconds: float
    fastest: float
    slowest: float
    runs: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Timing":
        """Make one from a list of seconds; raises ValueError when it is empty."""
        if not samples:
            raise ValueError("a timing needs at least one run; none was made")
        return cls(statistics.median(samples), min(samples), max(samples), len(samples))

    def bandwidth(self, nbytes: int) -> float:
        """Return GB/s (1e9 bytes per second) of a call that moves `nbytes`."""
        return nbytes / self.seconds / 1e9


@dataclass(frozen=True)
class Candidate:
    """Something to time: run k calls `function(*arguments[k % len(arguments)])`, which only queues GPU work.

    `queued=False` is for calls that make the host wait, such as copies from pageable memory.
    """

    function: Callable[..., Any]
    arguments: Sequence[tuple] = ((),)
    queued: bool = True


def require_gpu(what: str = "This benchmark", gpus: int = 1) -> None:
    """End the program with a message and exit code 2 unless kernels run on a GPU here, and there are so many GPUs."""
    if backend.name() != "gpu":
        print(
            f"{what} needs an NVIDIA GPU; here kernels run on the {backend.name()} ({backend.reason()}).\n"
            "Figures recorded on a GPU are in kernels/*/recordings.json.",
            file=sys.stderr,
        )
        raise SystemExit(NO_GPU)
    if gpus > 1 and gpu_count() < gpus:
        print(f"{what} needs {gpus} GPUs; this machine has {gpu_count()}.", file=sys.stderr)
        raise SystemExit(NO_GPU)


def gpu_count() -> int:
    """Return how many GPUs this process can use; 0 on the simulator."""
    if backend.name() != "gpu":
        return 0
    import cupy

    return cupy.cuda.runtime.getDeviceCount()


def cupy_on_gpu() -> Any:
    """Return CuPy itself, with the memory that its pool holds set free; ends the program where there is no GPU.

    For functions that measure a GPU and nothing else.
    """
    require_gpu("This measurement")
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    return cupy


def fitting(elements: int, arrays: int, itemsize: int = 4) -> int:
    """Return `elements`, halved until so many arrays of it fit in half of the free GPU memory."""
    free, _ = cupy_on_gpu().cuda.Device().mem_info
    while elements > 2**10 and itemsize * arrays * elements > free // 2:
        elements //= 2
    return elements


def native(language: str, array: Any) -> Any:
    """Return `array` as kernels of a language take it fastest.

    Numba converts a CuPy array at every launch and waits for its stream; converting once avoids that.
    """
    if language != "Numba":
        return array
    from numba import cuda

    return cuda.as_cuda_array(array)


def time_together(
    candidates: Mapping[str, Candidate], *, rounds: int = 5, runs: int = 10, warmup: int = 2
) -> dict[str, Timing]:
    """Time every candidate in turns, `runs` times in each of `rounds`; return the timings by name."""
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds):
        for name in list(candidates) if turn % 2 == 0 else reversed(list(candidates)):
            samples[name] += _samples(candidates[name], runs, warmup, start=turn * runs)
    return {name: Timing.of(times) for name, times in samples.items()}


def time_gpu(
    function: Callable[..., Any], arguments: Sequence[tuple] = ((),), *, runs: int = 50, queued: bool = True
) -> Timing:
    """Time one candidate alone; see `Candidate` for the parameters."""
    return time_together({"": Candidate(function, arguments, queued)}, rounds=1, runs=runs)[""]


def empty_launch() -> dict[str, float]:
    """Return seconds of a kernel that does nothing: what each time holds at least."""
    import cupy

    kernel = cupy.RawKernel('extern "C" __global__ void empty() {}', "empty")
    timing = time_together({"": Candidate(lambda: kernel((132,), (288,), ()))}, rounds=5, runs=20)[""]
    return {"seconds": timing.seconds, "fastest_seconds": timing.fastest, "slowest_seconds": timing.slowest}


def in_new_processes(function: Callable[..., Any], *arguments: Any, count: int = 2) -> list[Any]:
    """Return what a function of a module returns in so many new processes, one after the other."""
    found = []
    for _ in range(count):
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            found.append(pool.submit(function, *arguments).result())
    return found


def time_host(function: Callable[[], Any], *, runs: int = 20, warmup: int = 2) -> Timing:
    """Time `function` on the host's clock; it must itself wait for GPU work that is to count."""
    for _ in range(warmup):
        function()
    samples = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        samples.append(time.perf_counter() - start)
    return Timing.of(samples)


def _samples(candidate: Candidate, runs: int, warmup: int, start: int) -> list[float]:
    """Time each of `runs` calls in seconds; argument sets are taken from number `start` on."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    sets = candidate.arguments
    events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(runs)]
    candidate.function(*sets[start % len(sets)])  # compiles and loads; not in the estimate below
    stream.synchronize()
    began = time.perf_counter()
    for k in range(warmup):
        candidate.function(*sets[(start + k) % len(sets)])
    host_seconds_per_call = (time.perf_counter() - began) / warmup if warmup else 0.0
    empty_l2()
    if candidate.queued:
        hold_stream(2 * runs * (host_seconds_per_call + 5e-6) + 1e-4)
    else:
        stream.synchronize()
    for k, (before, after) in enumerate(events):
        arguments = sets[(start + k) % len(sets)]
        before.record()
        candidate.function(*arguments)
        after.record()
    stream.synchronize()
    return [cupy.cuda.get_elapsed_time(before, after) / 1e3 for before, after in events]


def empty_l2() -> None:
    """Queue a read of four times the L2's size, after which nothing of the measured data is left in it."""
    import numpy as np

    data, sink = _l2_filler()
    _read_all()((1024,), (256,), (data, np.uint64(data.size // 4), sink))


@functools.cache
def _read_all() -> Any:
    import cupy

    return cupy.RawModule(code=_READ_ALL).get_function("read_all")


@functools.cache
def _l2_filler() -> tuple[Any, Any]:
    import cupy

    return cupy.zeros(L2_MULTIPLE * l2_bytes() // 16 * 4, cupy.float32), cupy.zeros(1, cupy.float32)


def l2_bytes() -> int:
    """Return the size of the GPU's L2 cache in bytes."""
    import cupy

    return cupy.cuda.Device().attributes["L2CacheSize"]


def sets_beyond_l2(bytes_per_call: int, runs: int) -> int:
    """Return how many sets of buffers to take turns with, so that no call finds its own data in the L2.

    At most `runs`, since the L2 is emptied before every batch of runs.
    """
    return max(1, min(runs, math.ceil(L2_MULTIPLE * l2_bytes() / max(1, bytes_per_call)) + 1))


def copy_candidate(nbytes: int = COPY_BYTES) -> Candidate:
    """Return a device-to-device copy by the driver. It moves `2 * nbytes`: each byte is read and written."""
    import cupy

    source = cupy.empty(nbytes, cupy.uint8)
    destination = cupy.empty(nbytes, cupy.uint8)
    source.view(cupy.uint32)[:] = cupy.arange(nbytes // 4, dtype=cupy.uint32) * cupy.uint32(2654435761)
    return Candidate(copy_on_device, [(destination, source)])


def copy_on_device(destination: Any, source: Any) -> None:
    """Queue cudaMemcpyAsync from one CuPy array to another of the same size."""
    import cupy

    cupy.cuda.runtime.memcpyAsync(
        destination.data.ptr,
        source.data.ptr,
        source.nbytes,
        cupy.cuda.runtime.memcpyDeviceToDevice,
        cupy.cuda.get_current_stream().ptr,
    )


def machine(gpus: int = 1) -> dict[str, Any]:
    """Return the GPU, its software, the host's processor and today's date, as recordings name them.

    `gpus`: how many of this kind a measurement needs; if more than one, all that are there are named.
    """
    import cupy

    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "device": properties["name"].decode(),
        "gpus": gpus if gpus == 1 else gpu_count(),
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": l2_bytes(),
        "memory_bytes": properties["totalGlobalMem"],
        "cuda_driver": _version(runtime.driverGetVersion()),
        "cuda_runtime": _version(runtime.runtimeGetVersion()),
        "driver": driver_build(),
        "packages": {name: importlib.metadata.version(name) for name in ("numpy", "numba", "numba-cuda")}
        | {"cupy": cupy.__version__}
        | {found.name: found.version for found in importlib.metadata.distributions() if _is_library(found.name)},
        "host": host(),
        "date": datetime.date.today().isoformat(),
    }


def driver_build() -> str:
    """Return the driver's version, such as "580.159.04"; "" where the kernel module does not say."""
    module = Path("/sys/module/nvidia/version")
    return module.read_text().strip() if module.exists() else ""


def _is_library(name: str) -> bool:
    return name.startswith(
        ("cuda-cccl", "nvidia-cublas", "nvidia-cudnn", "nvidia-cufft", "nvidia-cuda-nvrtc", "nvidia-nccl", "nvmath")
    )


def host() -> dict[str, Any]:
    """Return the name of this machine's processor and the number of cores that the program may use."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        name = names[0].partition(":")[2].strip() if names else name
    return {"cpu": name, "cores": len(os.sched_getaffinity(0))}


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the text table: first column to the left, the others to the right; floats to four significant digits."""
    columns = [tables.Column(header, "right" if k else "left") for k, header in enumerate(headers)]
    return tables.Table(columns, [[_text(value) for value in row] for row in rows]).text()


def rows_table(
    headers: Sequence[str], keys: Sequence[str | Callable[[Any], Any]], rows: Iterable[Mapping[str, Any]]
) -> str:
    """Return `table` of measured rows; None is shown as nothing.

    `keys`: what stands below each header: the key in a row, of seconds where the header says µs or ms and of bytes
    where it says MB or MiB, or a function of the row.
    """

    def cell(row: Mapping[str, Any], header: str, key: str | Callable[[Any], Any]) -> Any:
        if callable(key):
            return key(row)
        factor = next((_UNITS[word] for word in header.split() if word in _UNITS), None)
        return "" if row[key] is None else row[key] if factor is None else row[key] * factor

    return table(headers, [[cell(row, *column) for column in zip(headers, keys, strict=True)] for row in rows])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def last_line(benchmark: str, figures: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> str:
    """Return the line that ends a benchmark: JSON with its name, its figures, the device and the date."""
    about = machine() if about is None else about
    line = {"benchmark": benchmark, "figures": rounded(dict(figures)), "device": about["device"], "date": about["date"]}
    return json.dumps(line)


def rounded(value: Any, digits: int = 4) -> Any:
    """Return `value` as JSON holds it, with every float in it rounded to so many significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {str(key): rounded(item, digits) for key, item in value.items()}
    return [rounded(item, digits) for item in value] if isinstance(value, (list, tuple)) else value
