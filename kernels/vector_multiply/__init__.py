"""Lab 01, out[i] = a[i] * b[i]: five kernels, from one thread per element to 16-byte accesses.

`KERNELS` has them by name; `recordings` holds what was measured on an H100.
"""

from kernels.vector_multiply.product import KERNELS
from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["KERNELS", "recordings"]
