# problem: mixed
# loses: mixed-uniform, mixed-budget
# reason: too many divergent branches

from warplab import cuda


@cuda.jit
def mixed(x, out):
    t = cuda.threadIdx.x
    odd = t // 16 % 2
    i = cuda.blockIdx.x * cuda.blockDim.x + t // 32 * 32 + 2 * (t % 16) + odd
    if i < out.size:
        if odd:
            out[i] = fold(x[i])
        else:
            out[i] = stir(x[i])
