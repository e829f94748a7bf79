"""pynvml with a GPU in virtual time: what it tells follows from the kernels that a test lets run.

`clock()` is the time and `clock.sleep` passes it; `FakeNvml.run` queues a kernel as a stream does.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pynvml

from kernels.serving.utilisation.virtual import Kernel, looked_at, samples

PERIOD = 0.1  # of the utilisation samples
SHIFT = 1_700_000_000.0  # NVML's time stamps are of another clock
SMS, MOST_WARPS = 132, 132 * 64


class Clock:
    """Virtual time; each look at it takes a little, so that loops which watch it end."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1e-6
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds


class FakeRun:
    """A kernel that was queued."""

    def __init__(self, clock: Clock, kernel: Kernel) -> None:
        self._clock, self._kernel = clock, kernel

    def wait(self) -> None:
        self._clock.now = max(self._clock.now, self._kernel.end)

    def seconds(self) -> float:
        assert self._clock.now >= self._kernel.end, "asked before the kernel ended"
        return self._kernel.seconds


class FakeNvml:
    """Stands in for the module pynvml, with one GPU. `gpm`, `keeps_samples`, `found`: what it can and is there."""

    def __init__(self, *, gpm: bool = True, keeps_samples: bool = True, found: bool = True) -> None:
        self.clock = Clock()
        self.kernels: list[Kernel] = []
        self.gpm, self.keeps_samples, self.found = gpm, keeps_samples, found
        self.readings: dict[int, float] = {}  # not yet freed
        self.open = 0
        self.refusals = 0  # how often the next reading is refused

    def __getattr__(self, name: str) -> Any:
        assert not name.startswith("nvml"), f"the fake lacks {name}"
        return getattr(pynvml, name)

    def run(self, seconds: float, sms: float = 1, warps: float = 1) -> FakeRun:
        """Queue a kernel behind those that were queued before."""
        free = max(self.clock.now, self.kernels[-1].end if self.kernels else 0.0)
        self.kernels.append(Kernel(free, seconds, sms, warps))
        return FakeRun(self.clock, self.kernels[-1])

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if not self.found or index:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return 0

    def nvmlDeviceGetName(self, _: int) -> str:
        return "Virtual H100"

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.0"

    def _samples(self) -> list[Any]:
        done = int(self.clock.now / PERIOD + 1e-9)
        return samples(self.kernels, PERIOD, done * PERIOD) if done else []

    def nvmlDeviceGetUtilizationRates(self, _: int) -> SimpleNamespace:
        last = self._samples()[-1:]
        return SimpleNamespace(gpu=round(100 * last[0].utilisation) if last else 0, memory=7)

    def nvmlDeviceGetSamples(self, _: int, kind: int, after: int) -> tuple[int, list[Any]]:
        assert kind == pynvml.NVML_GPU_UTILIZATION_SAMPLES
        if not self.keeps_samples:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        found = []
        for look in self._samples():
            sample = pynvml.c_nvmlSample_t()
            sample.timeStamp = int((SHIFT + look.end) * 1e6)
            sample.sampleValue.uiVal = round(100 * look.utilisation)
            found.append(sample)
        young = [sample for sample in found if sample.timeStamp > after]
        if not young:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, young

    def nvmlDeviceGetMemoryInfo(self, _: int) -> SimpleNamespace:
        return SimpleNamespace(used=3 * 2**30, total=80 * 2**30)

    def nvmlDeviceGetClockInfo(self, _: int, kind: int) -> int:
        return {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 2619}[kind]

    def nvmlDeviceGetPowerUsage(self, _: int) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetTemperature(self, _: int, __: int) -> int:
        return 40

    def nvmlGpmQueryDeviceSupport(self, _: int) -> SimpleNamespace:
        return SimpleNamespace(isSupportedDevice=int(self.gpm))

    def nvmlGpmSampleAlloc(self) -> Any:
        number = 1 + max(self.readings, default=0)
        self.readings[number] = float("nan")
        return ctypes.cast(ctypes.c_void_p(number), pynvml.c_nvmlGpmSample_t)

    def nvmlGpmSampleGet(self, _: int, reading: Any) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE)
        self.readings[_number(reading)] = self.clock.now
        return reading

    def nvmlGpmSampleFree(self, reading: Any) -> None:
        del self.readings[_number(reading)]

    def nvmlGpmMetricsGet(self, asked: Any) -> Any:
        assert asked.version == pynvml.NVML_GPM_METRICS_GET_VERSION
        times = self.readings[_number(asked.sample1)], self.readings[_number(asked.sample2)]
        look = looked_at(self.kernels, *times)
        answers = {
            pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL: look.utilisation,
            pynvml.NVML_GPM_METRIC_SM_UTIL: look.sm_activity,
            pynvml.NVML_GPM_METRIC_SM_OCCUPANCY: look.occupancy,
        }
        for metric in asked.metrics[: asked.numMetrics]:
            metric.nvmlReturn = 0 if metric.metricId in answers else pynvml.NVML_ERROR_NOT_SUPPORTED
            metric.value = 100 * answers.get(metric.metricId, float("nan"))
        return asked


def _number(reading: Any) -> int:
    return ctypes.cast(reading, ctypes.c_void_p).value or 0
