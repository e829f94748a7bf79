"""NCCL, by CuPy: the four collectives on whole buffers, in one process.

Buffers are as the schedules of this lab have them: a rank's buffer is as long as the result, in an all-gather it begins
with part r of rank r, in a reduce-scatter it ends with it. All is in place.

NVLink multicast stays off (NCCL_NVLS_ENABLE=0): what is compared is the links. NCCL is taken as it comes: its choice of
algorithm and protocol, one process, buffers from cudaMalloc that are not registered, so that it copies through its
own, while this lab's engines write straight into the peer's. nccl_window.py gives it buffers in a symmetric window,
where it does so too. (Asked to register in CUDA graphs, by the variable NCCL_LEGACY_CUDA_REGISTER, it took the same
times on two H200, 2026-11-22; whether it did register was not seen.)
"""

import contextlib
import ctypes
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernels.collectives.gpu_ranks import SECONDS, GpuTimeout, Ranks

COLLECTIVES = "broadcast", "all-reduce", "all-gather", "reduce-scatter"
_REMEDY = "it comes with `make setup` on a machine with a GPU"
_TYPES = {"float32": "NCCL_FLOAT32", "float64": "NCCL_FLOAT64", "float16": "NCCL_FLOAT16", "int32": "NCCL_INT32"}


class NcclMissing(RuntimeError):
    """NCCL cannot be loaded here."""


def library() -> Any:
    """Return cupy.cuda.nccl; raise NcclMissing where NCCL is not there."""
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder, "nccl", "lib").glob("libnccl.so*"):
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        raise NcclMissing(f"CuPy cannot load NCCL ({error}); {_REMEDY}") from None
    if not nccl.available:
        raise NcclMissing(f"CuPy has found no NCCL (libnccl.so.2); {_REMEDY}")
    return nccl


def version() -> str:
    """Return NCCL's version, such as "2.28.9"."""
    number = library().get_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


class Nccl:
    """Communicators of all ranks in this process. After a GpuTimeout they are ended; make a new object."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks, self._nccl = ranks, library()
        if len(set(ranks.devices)) < len(ranks):
            raise ValueError(f"NCCL takes one GPU per rank; the ranks are on GPUs {ranks.devices}")
        self.communicators = self._nccl.NcclCommunicator.initAll(list(ranks.devices))

    def launch(self, collective: str, buffers: Sequence[Any], root: int = 0) -> None:
        """Queue a collective in place on the ranks' streams. `buffers`: CuPy arrays, one per rank, on its GPU."""
        self._nccl.groupStart()
        for rank, (communicator, buffer) in enumerate(zip(self.communicators, buffers, strict=True)):
            with self.ranks.on(rank) as stream:
                call(self._nccl, communicator, collective, buffer, rank, len(buffers), root, stream)
        self._nccl.groupEnd()

    def wait(self, what: str = "NCCL", seconds: float = SECONDS) -> None:
        """Wait until the ranks' streams are empty; after `seconds` end the communicators and raise GpuTimeout."""
        try:
            self.ranks.wait(what, seconds)
        except GpuTimeout:
            for communicator in self.communicators:
                communicator.abort()
            raise


def call(nccl: Any, communicator: Any, collective: str, buffer: Any, rank: int, k: int, root: int, stream: Any) -> None:
    """Call one rank's function of NCCL, in place."""
    kind, start, n = getattr(nccl, _kind(buffer.dtype)), buffer.data.ptr, buffer.size
    part = start + rank * (n // k) * buffer.itemsize
    if collective in ("all-gather", "reduce-scatter") and n % k:
        raise ValueError(f"{n} elements cannot be shared out to {k} ranks; take a multiple")
    match collective:
        case "broadcast":
            communicator.broadcast(start, start, n, kind, root, stream.ptr)
        case "all-reduce":
            communicator.allReduce(start, start, n, kind, nccl.NCCL_SUM, stream.ptr)
        case "all-gather":
            communicator.allGather(part, start, n // k, kind, stream.ptr)
        case "reduce-scatter":
            communicator.reduceScatter(start, part, n // k, kind, nccl.NCCL_SUM, stream.ptr)
        case _:
            raise ValueError(f"there is no collective {collective!r} here; choose one of {', '.join(COLLECTIVES)}")


def _kind(dtype: Any) -> str:
    if dtype.name not in _TYPES:
        raise TypeError(f"arrays of {dtype.name}; NCCL is given {', '.join(_TYPES)} here")
    return _TYPES[dtype.name]
