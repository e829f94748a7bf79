"""Lab 05, tensor cores: C = A · B for float16 matrices with float32 sums, from one warp a tile to the library's speed.

`multiply` takes row-major matrices of any shape and checks them; `STEPS` has the six kernels by name. Steps 1 to 4 run
on any GPU from compute capability 8.0 on and in the simulator; 5 and 6 use Hopper's own instructions: an H100 or
H200. `recordings` holds what was measured on one, where somebody has recorded it.
"""

from kernels.tensor_core.product import multiply
from kernels.tensor_core.steps import STEPS, step
from warplab.bench.recordings import Recordings

recordings = Recordings("tensor_core")

__all__ = ["STEPS", "multiply", "recordings", "step"]
