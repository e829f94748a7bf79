"""The device that both drop-ins report: the limits that the simulator applies, those of compute capability 9.0."""

import math
import multiprocessing
import os
import sys
import warnings
from typing import NamedTuple

from warplab import simulator
from warplab.compile.architecture import DEFAULT_ARCH
from warplab.launch import profiling
from warplab.simulator.run.launch_limits import MAX_SHARED_BYTES

NAME = "PTX simulator"
COMPUTE_CAPABILITY = divmod(DEFAULT_ARCH, 10)
SHARED_BYTES = 48 * 1024  # per block that did not ask for more
MULTIPROCESSORS = 1  # the simulator runs thread blocks in order, as one multiprocessor would
NO_TIME = "there is no GPU here and the simulator's own speed says nothing about one, so events give no time, only NaN"
NO_CLOCK = (
    f"{NO_TIME}; `warplab run` estimates a card's, as does warplab.roofline(p) after `with warplab.profile() as p:`"
)


def check_dynamic_bytes(dynamic: int, static: int, allowed: int | None, how: str) -> None:
    """Raise InvalidLaunch for more shared memory of a launch than the kernel may have: `allowed`, or what 48 KiB leave.

    `how`: what asks for more."""
    most = SHARED_BYTES - static if allowed is None else allowed
    if most < dynamic <= MAX_SHARED_BYTES - static:
        error = simulator.InvalidLaunch(
            f"{dynamic:,} bytes of dynamic shared memory per block, where the kernel may have {most:,}",
            reason=f"More must be asked for before the launch: {how}.",
        )
        profiling.failed(error)
        raise error


_process: int | None = None  # the process that uses the device


class MemoryInfo(NamedTuple):
    """Bytes of the simulated device's memory."""

    free: int
    total: int


def in_use() -> None:
    """Note that this process uses the device, as the driver is initialised by the first use.

    Raises CudaSupportError where NUMBA_DISABLE_CUDA is set, and CudaDriverError in a process that `multiprocessing`
    forked from one that used the device, as on a GPU; RuntimeError where Numba, whose errors these are, is not loaded.
    After a plain `os.fork()`, which a GPU refuses, too, the simulator goes on.
    """
    global _process
    here = os.getpid()
    if _process == here:
        return
    refused = disabled()
    if refused:
        raise _error("CudaSupportError")(f"Error at driver init: {refused}")
    if _process is not None and multiprocessing.parent_process() is not None:
        raise _error("CudaDriverError")(
            f"CUDA initialized before forking: process {_process} used the device before it forked this one. Start "
            "processes with multiprocessing.get_context('spawn'), or use the device in the new processes only"
        )
    _process = here


def disabled() -> str | None:
    """Return why the device is not there: NUMBA_DISABLE_CUDA, which the stand-in heeds as Numba does."""
    numba = sys.modules.get("warplab.compile.numba_internals")  # not loaded for this: CuPy's stand-in runs without
    off = numba.config.DISABLE_CUDA if numba else os.environ.get("NUMBA_DISABLE_CUDA", "0") != "0"
    return "CUDA is disabled due to setting NUMBA_DISABLE_CUDA=1 in the environment" if off else None


def _error(name: str) -> type[Exception]:
    """Return the class of Numba's errors of the driver; RuntimeError where nothing has loaded Numba."""
    numba = sys.modules.get("warplab.compile.numba_internals")
    return getattr(numba.driver_errors, name) if numba else RuntimeError


def memory_info() -> MemoryInfo:
    memory = simulator.default_device().memory
    return MemoryInfo(memory.memory_bytes - memory.used_bytes, memory.memory_bytes)


def elapsed_time(evtstart, evtend) -> float:
    """Return NaN and warn once for each line that asks: the simulator has no clock of a GPU."""
    warnings.warn(NO_CLOCK, RuntimeWarning, stacklevel=2)
    return math.nan
