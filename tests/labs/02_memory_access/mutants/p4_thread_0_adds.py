# problem: smooth
# loses: smooth-right, smooth-once
# reason: one thread does too much of the work[\s\S]*thread 0 of block
from warplab import cuda


@cuda.jit
def smooth(a, out):
    own = cuda.shared.array(WINDOW, float32)
    t = cuda.threadIdx.x
    first = BLOCK * cuda.blockIdx.x - RADIUS
    for k in range(t, WINDOW, BLOCK):
        own[k] = a[first + k] if 0 <= first + k < a.size else float32(0)
    cuda.syncthreads()
    if t == 0:
        for j in range(min(BLOCK, out.size - BLOCK * cuda.blockIdx.x)):
            total = float32(0)
            for k in range(2 * RADIUS + 1):
                total += own[j + k]
            out[BLOCK * cuda.blockIdx.x + j] = total
