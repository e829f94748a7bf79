"""What the driver says of a GPU through NVML: utilisation and its samples, memory, clocks, power, and activity by GPM.

NVML is the library below nvidia-smi; nvidia-ml-py binds it. GPM (GPU performance monitoring, from Hopper on) counts
what DCGM calls SM activity and SM occupancy, without a profiler: take a reading before and one after, `Activity` is the
difference. Percentages of NVML become shares, 0 to 1. Sources: NVML API reference (nvmlUtilization_t,
nvmlDeviceGetSamples, nvmlGpmMetricsGet); DCGM user guide, "Profiling metrics".
"""

import math
import time
from dataclasses import dataclass, field, fields
from types import ModuleType
from typing import Any

# GPM, asked once, told nothing of one window in eight (H100, driver 580.159, 2026-11-23).
ATTEMPTS, PAUSE = 5, 0.002


class NoNvml(RuntimeError):
    """There is no NVIDIA driver here, or it refuses."""


def _gpm(metric: str) -> Any:
    """Return the field of a share that GPM counts as `metric`."""
    return field(default=None, metadata={"gpm": f"NVML_GPM_METRIC_{metric}"})


@dataclass(frozen=True)
class Activity:
    """What GPM counted between two readings; shares of the time between them, averaged over all SMs. None: not told.

    `graphics`: any work was on the GPU. `sm`: an SM had at least one warp. `occupancy`: warps held, of those there is
    room for. `integer`, `fp32`, `fp16`, `tensor`: a pipeline of an SM was busy. `dram`: of the memory's peak bandwidth.
    """

    graphics: float | None = _gpm("GRAPHICS_UTIL")
    sm: float | None = _gpm("SM_UTIL")
    occupancy: float | None = _gpm("SM_OCCUPANCY")
    integer: float | None = _gpm("INTEGER_UTIL")
    fp32: float | None = _gpm("FP32_UTIL")
    fp16: float | None = _gpm("FP16_UTIL")
    tensor: float | None = _gpm("ANY_TENSOR_UTIL")
    dram: float | None = _gpm("DRAM_BW_UTIL")


@dataclass(frozen=True)
class UtilisationSample:
    """One sample that the driver kept. `time`: its time stamp in seconds; `share`: of the sample period, 0 to 1."""

    time: float
    share: float


class NvmlGpu:
    """One GPU through NVML. `index`: as NVML counts. `library`: pynvml, or what stands in for it.

    Raises NoNvml, with what to do, where there is no driver or no such GPU.
    """

    def __init__(self, index: int = 0, library: ModuleType | Any = None) -> None:
        self._nvml = library or _library()
        try:
            self._nvml.nvmlInit()
            self._handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
        except self._nvml.NVMLError as error:
            raise NoNvml(f"NVML finds no GPU {index} ({error}); `make doctor` says what this machine has") from error

    @property
    def name(self) -> str:
        found = self._nvml.nvmlDeviceGetName(self._handle)
        return found.decode() if isinstance(found, bytes) else found

    def utilisation(self) -> tuple[float, float]:
        """Return nvidia-smi's GPU-Util and the share of time in which memory was read or written, both last."""
        found = self._nvml.nvmlDeviceGetUtilizationRates(self._handle)
        return found.gpu / 100, found.memory / 100

    def utilisation_samples(self, after: float = 0.0) -> list[UtilisationSample] | None:
        """Return the samples that the driver keeps, younger than the time stamp `after`; None where it gives none."""
        try:
            kind, samples = self._nvml.nvmlDeviceGetSamples(
                self._handle, self._nvml.NVML_GPU_UTILIZATION_SAMPLES, int(after * 1e6)
            )
        except self._nvml.NVMLError as error:
            # "Not found" means none yet; anything else, that this driver does not tell.
            return [] if error.value == self._nvml.NVML_ERROR_NOT_FOUND else None
        names = {
            self._nvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
            self._nvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
            self._nvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
            self._nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
            self._nvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
        }
        found = [
            UtilisationSample(s.timeStamp / 1e6, getattr(s.sampleValue, names[kind]) / 100)
            for s in samples
            if s.timeStamp > after * 1e6
        ]
        return sorted(found, key=lambda sample: sample.time)

    def memory(self) -> int:
        """Return the bytes in use, by all processes."""
        return self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used

    def clocks(self) -> tuple[int | None, int | None]:
        """Return clock of the SMs and of the memory, in MHz."""
        kinds = self._nvml.NVML_CLOCK_SM, self._nvml.NVML_CLOCK_MEM
        sm, memory = (self._told(self._nvml.nvmlDeviceGetClockInfo, self._handle, kind) for kind in kinds)
        return sm, memory

    def power(self) -> float | None:
        """Return watts that the card draws, as averaged by the driver."""
        milliwatts = self._told(self._nvml.nvmlDeviceGetPowerUsage, self._handle)
        return None if milliwatts is None else milliwatts / 1e3

    def temperature(self) -> int | None:
        """Return degrees Celsius of the chip."""
        return self._told(self._nvml.nvmlDeviceGetTemperature, self._handle, self._nvml.NVML_TEMPERATURE_GPU)

    def reading(self) -> Any:
        """Return a reading of GPM's counters, for `between`; None where the GPU or its driver has no GPM."""
        supported = self._told(self._nvml.nvmlGpmQueryDeviceSupport, self._handle)
        if supported is None or not supported.isSupportedDevice:
            return None
        reading = self._nvml.nvmlGpmSampleAlloc()
        for _ in range(ATTEMPTS):
            if self._told(self._nvml.nvmlGpmSampleGet, self._handle, reading) is not None:
                return reading
            time.sleep(PAUSE)
        self.forget(reading)
        return None

    def between(self, before: Any, after: Any) -> Activity:
        """Return the activity between two readings, at least 100 ms apart; what GPM did not count is None."""
        if before is None or after is None:
            return Activity()
        asked = self._nvml.c_nvmlGpmMetricsGet_t()
        asked.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        asked.sample1, asked.sample2 = before, after
        shares = fields(Activity)
        asked.numMetrics = len(shares)
        for share, metric in zip(shares, asked.metrics, strict=False):  # NVML's array has room for all that there are
            metric.metricId = getattr(self._nvml, share.metadata["gpm"])
        for _ in range(ATTEMPTS):
            if self._told(self._nvml.nvmlGpmMetricsGet, asked) is not None:
                break
            time.sleep(PAUSE)
        else:
            return Activity()
        return Activity(*map(_share, asked.metrics[: len(shares)]))

    def forget(self, reading: Any) -> None:
        """Free a reading."""
        if reading is not None:
            self._nvml.nvmlGpmSampleFree(reading)

    def close(self) -> None:
        """Leave NVML."""
        self._nvml.nvmlShutdown()

    def _told(self, function: Any, *arguments: Any) -> Any:
        """Return what NVML answers; None where it says that it cannot or may not."""
        try:
            return function(*arguments)
        except self._nvml.NVMLError:
            return None


def _share(answer: Any) -> float | None:
    """Read a metric as a share; None where GPM refused it, or counted nothing (its value then is no number)."""
    return answer.value / 100 if answer.nvmlReturn == 0 and math.isfinite(answer.value) else None


def _library() -> ModuleType:
    try:
        import pynvml
    except ModuleNotFoundError as error:
        raise NoNvml("nvidia-ml-py is not installed; `make setup` installs it") from error
    return pynvml
