# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: never written

from warplab import cuda


@cuda.jit
def mixed(x, out):
    t = cuda.threadIdx.x
    odd = t // 32
    i = cuda.blockIdx.x * cuda.blockDim.x + 2 * (t % 32) + odd
    if i < out.size:
        if odd:
            out[i] = fold(x[i])
        else:
            out[i] = stir(x[i])
