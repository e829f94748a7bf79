# problem: mixed
# loses: mixed-right
# reason: wrote \d+ elements? past the end|reaches past the end

from warplab import cuda


@cuda.jit
def mixed(x, out):
    t = cuda.threadIdx.x
    odd = t // 32 % 2
    i = cuda.blockIdx.x * cuda.blockDim.x + t // 64 * 64 + 2 * (t % 32) + odd
    if odd:
        out[i] = fold(x[i])
    else:
        out[i] = stir(x[i])
