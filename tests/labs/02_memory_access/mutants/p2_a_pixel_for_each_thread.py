# problem: grey
# loses: grey-sectors, grey-traffic
# reason: too many sectors per load request

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
    for k in range(3 * t, 3 * t + 3):
        if first + k < 3 * out.size:
            own[k] = pixels[(first + k) // 3, (first + k) % 3]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < out.size:
        out[i] = (2 * own[3 * t] + 5 * own[3 * t + 1] + own[3 * t + 2]) / 8
