"""Lab 13, Attention: where fusion meets recomputation.

`forward` computes attention by any of `STEPS`: 1 and 2 in Numba and float32; 3 by mma.sync and 4 by Hopper's wgmma, in
float16 or bfloat16. `backward` gives the gradients by recomputation, `decode` one token from a paged cache; `reference`
is NumPy in float64. `triton_kernels` is step 3 in Triton, where that is installed. `recordings` holds what was measured
on a GPU.
"""

from kernels.attention.backward_pass import backward
from kernels.attention.decoding import decode
from kernels.attention.forward_pass import STEPS, forward
from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["STEPS", "backward", "decode", "forward", "recordings"]
