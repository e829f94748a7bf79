"""CUB's histogram and selection (cub_reference.cu), compiled once by nvcc and called through ctypes.

CUB's algorithms need a host compiler, which NVRTC is not, so this is for machines with nvcc; elsewhere the benchmark
compares with what CuPy offers. The library is kept in the user's cache folder.
"""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernels.warp_divergence.kernel_table import SOURCES

SOURCE = SOURCES.folder / "cub_reference.cu"


def available() -> bool:
    """Return whether there is an nvcc to compile with, or a library that it made."""
    return shutil.which("nvcc") is not None or _path().exists()


@functools.cache
def library() -> ctypes.CDLL:
    """Return the compiled library. Raise RuntimeError where nvcc is missing or fails."""
    path = _path()
    if not path.exists():
        if shutil.which("nvcc") is None:
            raise RuntimeError(f"CUB is compiled by nvcc, which is not on the PATH: {SOURCE} was left out")
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        command = ["nvcc", "-O3", "-std=c++17", f"-arch=sm_{_capability()}", "-shared", "-Xcompiler", "-fPIC"]
        done = subprocess.run([*command, "-o", str(unfinished), str(SOURCE)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"nvcc could not compile {SOURCE}:\n{done.stderr}")
        os.replace(unfinished, path)
    return ctypes.CDLL(str(path))


def version() -> str:
    """Return CUB's version, such as "3.0.1"."""
    number = library().cub_version()
    return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"


def histogram(x: Any, bins: Any) -> Callable[[], None]:
    """Return a function that queues DeviceHistogram::HistogramEven of uint8 `x` into uint32 `bins` (CuPy arrays)."""
    function = library().cub_histogram
    return _two_calls(function, _pointer(x), _pointer(bins), ctypes.c_int(x.size))


def select(x: Any, threshold: float, out: Any, count: Any) -> Callable[[], None]:
    """Return a function that queues DeviceSelect::If of the elements > `threshold`; arrays as for `select`."""
    kind = {"float32": ctypes.c_float, "int32": ctypes.c_int}[x.dtype.name]
    function = getattr(library(), {"float32": "cub_select_float", "int32": "cub_select_int"}[x.dtype.name])
    arguments = (_pointer(x), kind(x.dtype.type(threshold)), _pointer(out), _pointer(count), ctypes.c_int(x.size))
    return _two_calls(function, *arguments)


def _two_calls(function: Any, *arguments: Any) -> Callable[[], None]:
    """Ask CUB for the size of its workspace, and return the call that uses one."""
    import cupy

    size, stream = ctypes.c_size_t(0), ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)

    def call(workspace: ctypes.c_void_p) -> None:
        status = function(workspace, ctypes.byref(size), *arguments, stream)
        if status:
            raise RuntimeError(f"CUB returned CUDA error {status}")

    call(ctypes.c_void_p(None))
    workspace = cupy.empty(max(1, size.value), cupy.uint8)

    def run() -> None:
        call(_pointer(workspace))

    return run


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.data.ptr)


def _capability() -> str:
    import cupy

    return cupy.cuda.Device().compute_capability


def _path() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "warplab"
    name = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    return cache / f"cub_{name}_sm_{_capability()}.so"
