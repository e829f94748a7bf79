"""Lab 04, matrix multiply: C = A · B in float32 on the ordinary cores, from one thread per element to cuBLAS's speed.

`matmul` takes row-major matrices of any shape and checks them; `STEPS` has the nine kernels by name, `tiles` the sizes
that the last one is compiled for; `recordings` holds what was measured on an H100.
"""

from kernels.matmul.ladder import STEPS, step
from kernels.matmul.multiply import matmul
from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["STEPS", "matmul", "recordings", "step"]
