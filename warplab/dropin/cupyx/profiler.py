"""cupyx.profiler on the simulator. Times are the simulator's, and say so; there are none of a GPU."""

import contextlib
import time
from collections.abc import Callable, Iterator

import numpy as np

from warplab.dropin import simulated_device
from warplab.dropin.cupy._core.missing import missing as _missing

SECONDS = 2.0  # after which a function is not called again; on a GPU 10,000 calls are the rule


class BenchmarkResult:
    """What `benchmark` returns: how long the calls took on the simulator, `cpu_times` in seconds."""

    def __init__(self, name: str, cpu_times: np.ndarray, wanted: int) -> None:
        self.name, self.cpu_times, self._wanted = name, cpu_times, wanted

    @property
    def gpu_times(self) -> np.ndarray:
        """Return NaN for each call, shape (1, calls), with a warning: there is no GPU here."""
        return np.full((1, len(self.cpu_times)), simulated_device.elapsed_time(None, None))

    def to_str(self, show_gpu: bool = False) -> str:
        mean, least, most = (1e6 * f(self.cpu_times) for f in (np.mean, np.min, np.max))
        calls = f"{len(self.cpu_times)} of {self._wanted:,} calls"
        return (
            f"{self.name:<20}: simulator: {mean:,.0f} us (min: {least:,.0f} / max: {most:,.0f}; {calls}). This says "
            "nothing about a GPU's time"
        )

    def __str__(self) -> str:
        return self.to_str()

    def __repr__(self) -> str:
        return self.to_str()


def benchmark(
    func: Callable,
    args: tuple = (),
    kwargs: dict | None = None,
    n_repeat: int = 10000,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = float("inf"),
    devices=None,
) -> BenchmarkResult:
    """Call `func(*args, **kwargs)` once without and up to `n_repeat` times with a clock, for `SECONDS` at the most."""
    if not callable(func):
        raise ValueError("`func` should be a callable object.")
    if not isinstance(args, tuple):
        raise ValueError("`args` should be of tuple type.")
    func(*args, **(kwargs or {}))
    times: list[float] = []
    while len(times) < max(1, n_repeat) and sum(times) < min(SECONDS, max_duration):
        start = time.perf_counter()
        func(*args, **(kwargs or {}))
        times.append(time.perf_counter() - start)
    return BenchmarkResult(name or str(getattr(func, "__name__", "function")), np.array(times), n_repeat)


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Let a profiler of NVIDIA see the block, on a GPU; here `warplab.profile()` counts."""
    yield


@contextlib.contextmanager
def time_range(message: str | None = None, color_id=None, argb_color=None, sync: bool = False) -> Iterator[None]:
    """Mark a range of a timeline, which nobody records here; also a decorator."""
    yield


def __getattr__(name: str):
    raise _missing("cupyx.profiler", name)
