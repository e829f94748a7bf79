"""Lab 04, matrix multiply: C = A · B in float32 on the ordinary cores, from one thread per element to cuBLAS's speed.

`matmul` takes row-major matrices of any shape and checks them; `STEPS` has nine kernels by name, `tiles` the sizes that
the last one is compiled for, and "split_k" is the tenth, which chooses by shape. `recordings` holds what was measured,
the tenth on an H200 and the others on an H100.
"""

from kernels.matmul.ladder import STEPS, step
from kernels.matmul.multiply import matmul
from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["STEPS", "matmul", "recordings", "step"]
