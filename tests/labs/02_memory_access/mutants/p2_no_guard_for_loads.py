# problem: grey
# loses: grey-right, grey-sectors, grey-traffic
# reason: reaches past the end of pixels

from numba import float32

from warplab import cuda

BLOCK = 128
FLOATS = 3 * BLOCK


@cuda.jit
def grey(pixels, out):
    """out[i] = (2 * red + 5 * green + blue) / 8 for pixel i; blocks of BLOCK threads."""
    own = cuda.shared.array(FLOATS, float32)
    t = cuda.threadIdx.x
    first = FLOATS * cuda.blockIdx.x
    for k in range(t, FLOATS, BLOCK):
        own[k] = pixels[(first + k) // 3, (first + k) % 3]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < out.size:
        out[i] = (2 * own[3 * t] + 5 * own[3 * t + 1] + own[3 * t + 2]) / 8
