"""Lab 01, out[i] = a[i] * b[i]: five kernels, from one thread an element to 16-byte accesses.

`multiply` checks its arrays and launches one of `KERNELS`; `recordings` holds what was measured on an H100.
"""

from kernels.vector_multiply.host import KERNELS, multiply
from warplab.bench.recordings import Recordings

recordings = Recordings("vector_multiply")

__all__ = ["KERNELS", "multiply", "recordings"]
