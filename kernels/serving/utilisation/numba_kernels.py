"""Lab 11's kernels in Numba: `spin` of spin.cu, `copy` of copy.cu (without its 16-byte accesses)."""

import numpy as np

from warplab import cuda


@cuda.jit
def spin(c, rounds, out):
    """Compute z = z * z + c, `rounds` times; NVVM makes one fused multiply-add of it."""
    i = cuda.grid(1)
    if i < out.size:
        step = c[i]
        z = np.float32(0)
        for _ in range(rounds):
            z = z * z + step
        out[i] = z


@cuda.jit
def copy(x, out):
    """Copy x[i] to out[i], in a loop over the grid."""
    stride = cuda.gridsize(1)
    for i in range(cuda.grid(1), out.size, stride):
        out[i] = x[i]
