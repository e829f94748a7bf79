# problem: grey
# loses: grey-right, grey-sectors, grey-traffic
# reason: one thread does too much of the work
from warplab import cuda


@cuda.jit
def grey(pixels, out):
    own = cuda.shared.array(FLOATS, float32)
    t = cuda.threadIdx.x
    first = FLOATS * cuda.blockIdx.x
    if t < 32:
        for k in range(t, FLOATS, 32):
            if first + k < 3 * out.size:
                own[k] = pixels[(first + k) // 3, (first + k) % 3]
        cuda.syncwarp()
        for j in range(t, BLOCK, 32):
            i = BLOCK * cuda.blockIdx.x + j
            if i < out.size:
                out[i] = (2 * own[3 * j] + 5 * own[3 * j + 1] + own[3 * j + 2]) / 8
