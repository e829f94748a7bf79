# problem: grey
# loses: grey-traffic
# reason: too many global load sectors

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
    for k in range(t % 64, FLOATS, 64):
        if first + k < 3 * out.size and (t < 64 or pixels[(first + k) // 3, (first + k) % 3] == 1000):
            own[k] = pixels[(first + k) // 3, (first + k) % 3]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < out.size:
        out[i] = (2 * own[3 * t] + 5 * own[3 * t + 1] + own[3 * t + 2]) / 8
