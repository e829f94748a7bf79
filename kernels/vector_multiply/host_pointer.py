"""What a kernel does with a pointer to host memory from malloc: on some machines it fails, on some it works.

A GPU can use such memory where driver and operating system share page tables or migrate pages between host
and device (heterogeneous memory management, HMM); the device attribute cudaDevAttrPageableMemoryAccess says
whether they do. The attempt runs in a process of its own: an illegal address ends a process's CUDA context.
"""

from typing import Any

from warpcourse.bench import random_inputs, timing
from warpcourse.processes import isolated_call

_ELEMENTS = 1024
# Values of enum cudaDeviceAttr in CUDA's driver_types.h.
_PAGEABLE_MEMORY_ACCESS = 88
_HOST_PAGE_TABLES = 100


def host_pointer() -> dict[str, Any]:
    """Launch the scalar kernel on host arrays, in a process of its own; return the attributes and what happened.

    `outcome`: "error" (with `message`), "right" (it worked) or "wrong" (it ran and gave wrong numbers).
    """
    timing.require_gpu("This measurement")
    return isolated_call.call(f"{__name__}:attempt")


def attempt() -> dict[str, Any]:
    """Return the measurement itself, which may end this process's CUDA context."""
    import cupy
    import numpy as np

    from kernels.vector_multiply.product import KERNELS

    a, b = (random_inputs.generator().random(_ELEMENTS, dtype=np.float32) for _ in range(2))
    out = np.full(_ELEMENTS, np.nan, np.float32)
    attributes = {
        "pageable_memory_access": bool(cupy.cuda.runtime.deviceGetAttribute(_PAGEABLE_MEMORY_ACCESS, 0)),
        "host_page_tables": bool(cupy.cuda.runtime.deviceGetAttribute(_HOST_PAGE_TABLES, 0)),
    }
    pointers = tuple(np.uint64(array.ctypes.data) for array in (a, b, out))
    try:
        KERNELS["cuda_scalar"].function()((_ELEMENTS // 256,), (256,), (*pointers, np.uint64(_ELEMENTS)))
        cupy.cuda.Device().synchronize()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return attributes | {"outcome": "error", "message": str(error)}
    return attributes | {"outcome": "right" if np.array_equal(out, a * b) else "wrong", "message": ""}
