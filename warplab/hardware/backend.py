"""Which backend runs kernels, "gpu" or "simulator", and why. Decided once per process.

The GPU runs them if the driver supports CUDA 13.0 or newer, CUDA 13 compiles for the GPU, and Numba and CuPy can use
it. WARPLAB_BACKEND=simulator|gpu overrides.
"""

import functools
import importlib.util
import os
import sys

from warplab.hardware import driver

OLDEST_CUDA = (13, 0)
OLDEST_DRIVER = "580"
# CUDA 13 compiles for Turing and newer: nvrtcGetSupportedArchs of NVRTC 13.0 begins with 75.
OLDEST_COMPUTE_CAPABILITY = (7, 5)


class BackendError(RuntimeError):
    """WARPLAB_BACKEND asks for a backend that this machine does not have."""


def name() -> str:
    """Return "gpu" or "simulator". Raises BackendError where WARPLAB_BACKEND cannot be followed."""
    return _choose()[0]


def reason() -> str:
    """Return why, as a sentence without its full stop."""
    return _choose()[1]


@functools.cache
def announce() -> None:
    """Say once per process which backend runs and why: in a notebook as ordinary output, elsewhere on stderr."""
    stream = sys.stdout if "ipykernel" in sys.modules else sys.stderr
    where = "the GPU" if name() == "gpu" else "the simulator"
    print(f"Warp Lab runs kernels on {where}: {reason()}.", file=stream, flush=True)


@functools.cache
def _choose() -> tuple[str, str]:
    asked = os.environ.get("WARPLAB_BACKEND", "").strip().lower()
    if asked not in ("", "gpu", "simulator"):
        raise BackendError(f"WARPLAB_BACKEND is {asked!r}; set it to gpu or simulator, or unset it.")
    if asked == "simulator":
        return "simulator", "WARPLAB_BACKEND=simulator"
    problem, advice = gpu_problem()
    if problem is None:
        found = driver.query()
        return "gpu", f"{found.gpus[0].name}, driver {_version(found)}"
    if asked == "gpu":
        raise BackendError(
            f"WARPLAB_BACKEND=gpu, but {problem}. {advice}{' ' if advice else ''}"
            "Unset WARPLAB_BACKEND to use the simulator."
        )
    return "simulator", problem


def gpu_problem() -> tuple[str | None, str]:
    """Return why no GPU can be used and what to do about it, or (None, "")."""
    problem, advice = device_problem(driver.query())
    return (problem, advice) if problem else library_problem()


def device_problem(found: driver.Driver) -> tuple[str | None, str]:
    """Return the same as `gpu_problem` for the driver and the first GPU alone."""
    if found.problem:
        return found.problem, found.advice
    if not found.gpus:
        return "the NVIDIA driver finds no GPU", driver.LOOK_FOR_GPU
    if found.cuda is None or found.cuda < OLDEST_CUDA:
        return (
            f"the NVIDIA driver is too old: {_version(found)}, and the course needs CUDA 13.0 or newer",
            f"Install NVIDIA's driver, branch {OLDEST_DRIVER} or newer.",
        )
    first = found.gpus[0]
    if first.compute_capability < OLDEST_COMPUTE_CAPABILITY:
        capability = "{}.{}".format(*first.compute_capability)
        return (
            f"{first.name} has compute capability {capability}, and CUDA 13 compiles for 7.5 (Turing) or newer",
            "If this machine has a newer GPU, put it first with CUDA_VISIBLE_DEVICES.",
        )
    return None, ""


def library_problem() -> tuple[str | None, str]:
    """Return the same as `gpu_problem` for the packages that drive the GPU, after letting each find it."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0":
        return "NUMBA_ENABLE_CUDASIM is set, so Numba uses its own simulator", "Unset it."
    for package, module in (("numba-cuda", "numba_cuda"), ("cupy-cuda13x", "cupy")):
        if importlib.util.find_spec(module) is None:
            return f"the package {package} is not installed", "Run the course with its own Python: make lab."
    try:
        import cupy
        from numba import cuda

        cuda.get_current_device()
        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # whatever these libraries raise, the simulator still runs
        first_line = (str(error).splitlines() or [""])[0]
        return (
            f"Numba or CuPy cannot use the GPU ({type(error).__name__}: {first_line})",
            "`make doctor` tells which package differs from its pin; `make setup` installs the pins.",
        )
    return None, ""


def _version(found: driver.Driver) -> str:
    cuda = "CUDA {}.{}".format(*(found.cuda or "??"))
    return f"{found.version} for {cuda}" if found.version else f"for {cuda}"
