# problem: grey
# loses: grey-traffic
# reason: too many shared (store|load) bank conflicts

from numba import float32

from warplab import cuda

BLOCK = 128
FLOATS = 3 * BLOCK


@cuda.jit
def grey(pixels, out):
    """out[i] = (2 * red + 5 * green + blue) / 8 for pixel i; blocks of BLOCK threads."""
    own = cuda.shared.array((BLOCK, 32), float32)
    t = cuda.threadIdx.x
    first = FLOATS * cuda.blockIdx.x
    for k in range(t, FLOATS, BLOCK):
        if first + k < 3 * out.size:
            own[k // 3, k % 3] = pixels[(first + k) // 3, (first + k) % 3]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < out.size:
        out[i] = (2 * own[t, 0] + 5 * own[t, 1] + own[t, 2]) / 8
