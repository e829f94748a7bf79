# problem: smooth
# loses: smooth-right, smooth-once
# reason: one thread does too much of the work[\s\S]*thread 0 of block
from numba import float32

from warplab import cuda


@cuda.jit
def smooth(a, out):
    own = cuda.shared.array(WINDOW, float32)
    if cuda.threadIdx.x == 0:
        first = BLOCK * cuda.blockIdx.x - RADIUS
        for k in range(WINDOW):
            own[k] = a[first + k] if 0 <= first + k < a.size else float32(0)
        for t in range(min(BLOCK, out.size - cuda.grid(1))):
            total = float32(0)
            for k in range(2 * RADIUS + 1):
                total += own[t + k]
            out[cuda.grid(1) + t] = total
