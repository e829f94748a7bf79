"""`Queued`: a launch with its kernel, grid and arguments, to be run here or compared with Nsight Compute; and how
templates are named, and which vectors arrays allow.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.convolution.common.sources import SOURCES
from warpcourse.bench.lab_kernels import Size, launch

TYPES = {"float16": "half", "float32": "float"}  # of elements, in CUDA C++
VECTOR_BYTES = 16


class Queued(NamedTuple):
    """A launch of the kernel `entry` of `file`. `shared_bytes`: dynamic shared memory of a block."""

    file: str
    entry: str
    grid: Size
    block: Size
    arguments: tuple
    shared_bytes: int = 0

    def function(self) -> Any:
        """Return the compiled kernel of the active backend."""
        return SOURCES.function(self.file, self.entry)

    def launch(self) -> None:
        """Queue it on the current stream, without any check."""
        launch(self.function(), self.grid, self.block, self.arguments, self.shared_bytes)


def address(*arrays: Any) -> int:
    """Return the bitwise or of the addresses of device arrays; None has none, and NumPy's arrays are yet to be
    copied."""
    found = 0
    for array in arrays:
        interface = getattr(array, "__cuda_array_interface__", None)
        found |= interface["data"][0] if interface else 0
    return found


def vector(dtype: Any, length: int, *arrays: Any) -> int:
    """Return elements that a load of 16 bytes brings, if they divide `length` and all arrays begin at multiples; else
    1."""
    wide = VECTOR_BYTES // np.dtype(dtype).itemsize
    return wide if length % wide == 0 and address(*arrays) % VECTOR_BYTES == 0 else 1


def instance(kernel: str, dtype: Any, *parameters: Any) -> str:
    """Return a template's instance as CUDA C++ writes it: of "f", np.float16, True and 8 "f<half, true, 8>"."""
    written = (str(p).lower() if isinstance(p, bool) else str(p) for p in parameters)
    return f"{kernel}<{', '.join((TYPES[np.dtype(dtype).name], *written))}>"
