"""Lab 01, out[i] = a[i] * b[i]: five kernels, from one thread per element to 16-byte accesses.

`multiply` checks its arrays and launches one of `KERNELS`; `recordings` holds what was measured on an H100.
"""

from kernels.vector_multiply.product import KERNELS, multiply
from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["KERNELS", "multiply", "recordings"]
