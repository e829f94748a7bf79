"""What a file of tests leaves in a worker's memory, and the next has no use for: each gives it back at its end."""

from __future__ import annotations

import ctypes
import gc
import mmap
import re
import sys
import types
from pathlib import Path

GROWN, MOST_OF_LIBRARIES = 32 << 20, 192 << 20  # bytes
# In /proc/self/smaps: addresses of what is read or run from a file, and none of whose pages is another than the file's.
UNCHANGED = re.compile(r"^(\w+)-(\w+) r-[x-]p \w+ \S+ [1-9].*\n(?:(?!Anonymous)[A-Z].*\n)*Anonymous: +0 kB$", re.M)


_left = 0  # bytes in memory after they were last given back


def give_back(grown: int = GROWN) -> None:
    """Drop programs that the simulator has loaded; where memory has grown by `grown` bytes, what Numba compiled, too.

    A worker meets hundreds of each. To look for garbage takes 0.1 s, more than the tests of many files.
    """
    global _left
    for module in _modules("warplab.compile.", "warplab.launch."):
        for cached in vars(module).values():
            if hasattr(cached, "cache_parameters") and cached.cache_parameters()["maxsize"]:
                cached.cache_clear()
    if sys.platform == "linux" and _pages(1) < _left + grown:
        return
    for module in _modules("kernels.", "tests."):
        for kernel in vars(module).values():
            forget_compiled(kernel)
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)  # glibc keeps freed arrays of a thread otherwise
        let_go_of_libraries()
        _left = _pages(1)


def _modules(*beginnings: str) -> list[types.ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith(beginnings)]


def _pages(number: int) -> int:
    """Return one of Linux's figures of this process in bytes: 1 is all that is in memory, 2 what of it is of files."""
    return int(Path("/proc/self/statm").read_text().split()[number]) * mmap.PAGESIZE


def forget_compiled(kernel: object) -> None:
    """Let Numba compile a kernel anew for whatever types come: it keeps LLVM's code, PTX and program for each."""
    source = getattr(kernel, "_warplab_source", None)
    if hasattr(source, "specializations") and not source.signatures:
        source.specializations.clear()
        kernel._reset_overloads()  # also what Numba's C code has of them, which would outlive them
    elif isinstance(kernel, types.FunctionType):
        kernel.__dict__.pop("_warplab_sources", None)


def let_go_of_libraries(most: int = MOST_OF_LIBRARIES) -> None:
    """Where more than `most` bytes of files are in memory, drop pages of libraries: what is used comes back by itself.

    TensorFlow's and the compilers' are 0.4 GB, most of them read once, as they are loaded. The system has each page
    once for all workers, but counts it as memory of every one.
    """
    if sys.platform != "linux" or _pages(2) <= most:
        return
    advise = ctypes.CDLL(None).madvise
    for found in UNCHANGED.finditer(Path("/proc/self/smaps").read_text()):
        start, end = (int(address, 16) for address in found.groups())
        advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)
