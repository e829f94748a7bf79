"""Lab 05, tensor cores: C = A · B for float16 matrices with float32 sums, from a warp per tile to the library's speed.

`multiply` takes row-major matrices of any shape and checks them; `STEPS` has the six kernels by name. Steps 1 to 4 run
on any GPU from compute capability 8.0 on; 5 and 6 use Hopper's own instructions: an H100 or H200. The simulator runs
all. `multiply_any` is step 7: it chooses how to compute each shape, and takes transposed factors; where a GPU lacks
Hopper's instructions, float16 is step 4's.
`recordings` holds what was measured on one, where somebody has recorded it.
"""

from kernels.tensor_core.ladder import STEPS, step
from kernels.tensor_core.product import multiply, multiply_any
from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["STEPS", "multiply", "multiply_any", "recordings", "step"]
