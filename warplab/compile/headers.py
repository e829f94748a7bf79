"""Where headers are: CUDA's in pip packages, and in a toolkit of the machine where there is one; the course's here."""

import functools
import os
from pathlib import Path

COURSE_HEADERS = Path(__file__).parent / "include"  # of the course's own headers, <warplab/...>
AS_NVCC = Path(__file__).parent / "as_nvcc"  # of the C++ library's headers that nvcc takes and NVRTC does not


@functools.cache
def include_folders() -> tuple[str, ...]:
    """Return the folders of CUDA's headers: runtime and crt (<mma.h>), CCCL (<cuda/std/...>), <curand_kernel.h>."""
    try:
        from cuda import pathfinder
    except ImportError:
        return ()
    folders = []
    for library in ("cudart", "cccl", "curand"):
        try:
            folder = pathfinder.find_nvidia_header_directory(library)
        except Exception:  # a missing header package matters only to sources that include from it
            folder = None
        if folder:
            folders.append(folder)
    # The machine's own toolkit comes last, for what the packages lack: not every machine with a GPU has the package
    # with <crt/mma.h>.
    toolkit = os.path.join(os.environ.get("CUDA_PATH", ""), "include")
    return (*folders, toolkit) if os.path.isabs(toolkit) and os.path.isdir(toolkit) else tuple(folders)
