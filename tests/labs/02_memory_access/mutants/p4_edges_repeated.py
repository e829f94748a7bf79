# problem: smooth
# loses: smooth-right, smooth-once
# reason: out is wrong in

from numba import float32

from warplab import cuda

BLOCK = 128
RADIUS = 4
WINDOW = BLOCK + 2 * RADIUS


@cuda.jit
def smooth(a, out):
    """out[i] = a[i - RADIUS] + ... + a[i + RADIUS]; blocks of BLOCK threads."""
    own = cuda.shared.array(WINDOW, float32)
    t = cuda.threadIdx.x
    first = BLOCK * cuda.blockIdx.x - RADIUS
    for k in range(t, WINDOW, BLOCK):
        own[k] = a[min(max(first + k, 0), a.size - 1)]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < out.size:
        total = float32(0)
        for k in range(2 * RADIUS + 1):
            total += own[t + k]
        out[i] = total
