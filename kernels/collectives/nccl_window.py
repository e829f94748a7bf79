"""Buffers in a symmetric window of NCCL, by ctypes from the library that CuPy has loaded: CuPy does not name them.

All ranks' memory is mapped into each other's address space, so that NCCL's kernels write straight into the peer's, as
this lab's do. Functions and flag: https://github.com/NVIDIA/nccl/blob/v2.28.9-1/src/nccl.h.in. Where the GPUs cannot
share memory so, that version registers each buffer for itself and reports no error; a window that is one lies in a
GPU's memory (src/dev_runtime.cc, ncclDevrWindowRegisterInGroup), and this is what `symmetric` looks at.
"""

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.collectives.nccl import Nccl, library, version

SYMMETRIC = 1  # NCCL_WIN_COLL_SYMMETRIC
_ON_DEVICE = 2, 3  # cudaMemoryTypeDevice, cudaMemoryTypeManaged
_FUNCTIONS = {  # name: types of the arguments; each returns an ncclResult_t
    "ncclMemAlloc": (ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t),
    "ncclCommWindowRegister": (
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
        *(ctypes.POINTER(ctypes.c_void_p), ctypes.c_int),
    ),
}


class NoWindow(RuntimeError):
    """NCCL gave no symmetric window here."""


def symmetric(nccl: Nccl, n: int) -> list[Any]:
    """Return arrays of n float32 on the ranks' GPUs, in one symmetric window of `nccl`'s communicators.

    Raise NoWindow, with NCCL's own words, where that fails. The memory stays until the process ends.
    """
    loaded, ranks, nbytes = _loaded(), nccl.ranks, 4 * n
    addresses = [ctypes.c_void_p() for _ in ranks.devices]
    windows = [ctypes.c_void_p() for _ in ranks.devices]
    for rank, address in enumerate(addresses):
        with ranks.on(rank):
            _call(loaded, "ncclMemAlloc", ctypes.byref(address), nbytes)
    api = library()
    api.groupStart()
    try:
        for communicator, address, window in zip(nccl.communicators, addresses, windows, strict=True):
            arguments = communicator.comm, address, nbytes, ctypes.byref(window), SYMMETRIC
            _call(loaded, "ncclCommWindowRegister", *arguments)
    finally:
        api.groupEnd()  # where the ranks meet
    for window in windows:
        if not window.value or ranks.cupy.cuda.runtime.pointerGetAttributes(window.value).type not in _ON_DEVICE:
            raise NoWindow(f"NCCL {version()} registered the buffers for each rank alone, in no symmetric window")
    return [_array(ranks, rank, address.value, n) for rank, address in enumerate(addresses)]


def _array(ranks: Any, rank: int, address: Any, n: int) -> Any:
    memory = ranks.cupy.cuda.UnownedMemory(address, 4 * n, None, ranks.devices[rank])
    with ranks.on(rank):
        return ranks.cupy.ndarray((n,), np.float32, ranks.cupy.cuda.MemoryPointer(memory, 0))


def _loaded() -> Any:
    """Return the NCCL that this process has loaded already, never another one."""
    try:
        loaded = ctypes.CDLL("libnccl.so.2", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        for name, types in _FUNCTIONS.items():
            getattr(loaded, name).argtypes = types
    except (OSError, AttributeError) as error:
        raise NoWindow(f"symmetric windows came with NCCL 2.27; here: {error}") from None
    loaded.ncclGetLastError.restype = loaded.ncclGetErrorString.restype = ctypes.c_char_p
    loaded.ncclGetLastError.argtypes = (ctypes.c_void_p,)
    return loaded


def _call(loaded: Any, name: str, *arguments: Any) -> None:
    function: Callable[..., int] = getattr(loaded, name)
    if status := function(*arguments):
        words = loaded.ncclGetErrorString(status), loaded.ncclGetLastError(None)
        raise NoWindow(f"{name}: {'; '.join(word.decode(errors='replace').strip() for word in words if word)}")
