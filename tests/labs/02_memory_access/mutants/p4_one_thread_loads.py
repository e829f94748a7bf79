# problem: smooth
# loses: smooth-right, smooth-once
# reason: one thread does too much of the work[\s\S]*bytes loaded from global memory[\s\S]*thread 0 of block
from numba import float32

from warplab import cuda


@cuda.jit
def smooth(a, out):
    own = cuda.shared.array(WINDOW, float32)
    t = cuda.threadIdx.x
    first = BLOCK * cuda.blockIdx.x - RADIUS
    if t == 0:
        for k in range(WINDOW):
            own[k] = a[first + k] if 0 <= first + k < a.size else float32(0)
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < out.size:
        total = float32(0)
        for k in range(2 * RADIUS + 1):
            total += own[t + k]
        out[i] = total
