"""The machine's load while a run trains, sampled by a thread of its worker into load.jsonl.

A line is {"time": seconds since 1970, "cpu": %, of all cores of the machine, "process_cpu": %, 100 for one core,
"memory": bytes of this process, "memory_used", "memory_total": bytes of the machine}, and with GPUs that NVML finds
"gpus": [{"name", "gpu": % of time busy, "memory_used", "memory_total"}].
"""

import threading
import time
from pathlib import Path
from typing import Any

import psutil

from digits.files import DigitsError, append_line

FILE = "load.jsonl"
_DENSE = 600  # samples at one a second; after them the pace slows, so that a long run's file stays short


class Sampler:
    """`with Sampler(run):` samples until the block ends. A full disk ends the sampling, not the run."""

    def __init__(self, run: Path, interval: float = 1.0) -> None:
        self._path = Path(run) / FILE
        self._interval = interval
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="load", daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(timeout=5)

    def _sample(self) -> None:
        process, gpus = psutil.Process(), _gpus()
        psutil.cpu_percent()  # the first answer of each is about no interval at all
        process.cpu_percent()
        taken = 0
        while not self._end.wait(self._interval * max(1.0, taken / _DENSE)):
            try:
                append_line(self._path, sample(process, gpus))
            except (DigitsError, psutil.Error):
                return
            taken += 1


def sample(process: psutil.Process, gpus: list[Any]) -> dict[str, Any]:
    """Return one line."""
    machine = psutil.virtual_memory()
    line = {
        "time": round(time.time(), 2),
        "cpu": psutil.cpu_percent(),
        "process_cpu": process.cpu_percent(),
        "memory": process.memory_info().rss,
        "memory_used": machine.total - machine.available,
        "memory_total": machine.total,
    }
    if seen := [one for gpu in gpus if (one := _gpu_load(gpu))]:
        line["gpus"] = seen
    return line


def _gpus() -> list[Any]:
    """Return NVML's handles; none on a machine without an NVIDIA driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return [pynvml.nvmlDeviceGetHandleByIndex(at) for at in range(pynvml.nvmlDeviceGetCount())]
    except Exception:  # no library, no driver or no permission: there is nothing to show
        return []


def _gpu_load(gpu: Any) -> dict[str, Any] | None:
    import pynvml

    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(gpu)
        name = pynvml.nvmlDeviceGetName(gpu)
        return {
            "name": name.decode() if isinstance(name, bytes) else name,
            "gpu": pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
            "memory_used": memory.used,
            "memory_total": memory.total,
        }
    except pynvml.NVMLError:
        return None
