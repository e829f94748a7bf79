# problem: smooth
# loses: smooth-right, smooth-once
# reason: one thread does too much of the work
from warplab import cuda


@cuda.jit
def smooth(a, out):
    own = cuda.shared.array(WINDOW, float32)
    t = cuda.threadIdx.x
    first = BLOCK * cuda.blockIdx.x - RADIUS
    if t < 32:
        for k in range(t, WINDOW, 32):
            own[k] = a[first + k] if 0 <= first + k < a.size else float32(0)
        cuda.syncwarp()
        for j in range(t, BLOCK, 32):
            i = BLOCK * cuda.blockIdx.x + j
            if i < out.size:
                total = float32(0)
                for k in range(2 * RADIUS + 1):
                    total += own[j + k]
                out[i] = total
