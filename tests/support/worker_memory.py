"""What a file of tests leaves in a worker's memory, and the next has no use for: each gives it back at its end."""

from __future__ import annotations

import ctypes
import gc
import mmap
import re
import sys
import types
from pathlib import Path

MOST_OF_LIBRARIES = 192 << 20  # bytes of them in memory
# In /proc/self/smaps: addresses of what is read or run from a file, and none of whose pages is another than the file's.
UNCHANGED = re.compile(r"^(\w+)-(\w+) r-[x-]p \w+ \S+ [1-9].*\n(?:(?!Anonymous)[A-Z].*\n)*Anonymous: +0 kB$", re.M)


def give_back() -> None:
    """Drop programs that the simulator has loaded and kernels that Numba has compiled: a worker meets hundreds."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("warplab.compile.", "warplab.launch.")):
            for cached in vars(module).values():
                if hasattr(cached, "cache_parameters") and cached.cache_parameters()["maxsize"]:
                    cached.cache_clear()
        elif name.startswith(("kernels.", "tests.")):
            for kernel in vars(module).values():
                forget_compiled(kernel)
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)  # glibc keeps freed arrays of a thread otherwise
    let_go_of_libraries()


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
    if sys.platform != "linux" or int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE <= most:
        return
    advise = ctypes.CDLL(None).madvise
    for found in UNCHANGED.finditer(Path("/proc/self/smaps").read_text()):
        start, end = (int(address, 16) for address in found.groups())
        advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)
