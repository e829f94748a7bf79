# problem: grey
# loses: grey-right, grey-sectors, grey-traffic
# reason: one thread does too much of the work[\s\S]*thread 0 of block
from warplab import cuda


@cuda.jit
def grey(pixels, out):
    own = cuda.shared.array(FLOATS, float32)
    results = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    first = FLOATS * cuda.blockIdx.x
    for k in range(t, FLOATS, BLOCK):
        if first + k < 3 * out.size:
            own[k] = pixels[(first + k) // 3, (first + k) % 3]
    cuda.syncthreads()
    if t == 0:
        for j in range(min(BLOCK, out.size - BLOCK * cuda.blockIdx.x)):
            results[j] = (2 * own[3 * j] + 5 * own[3 * j + 1] + own[3 * j + 2]) / 8
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < out.size:
        out[i] = results[t]
