# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: out is wrong in
from warplab import cuda


@cuda.jit
def mixed(x, out):
    t = cuda.threadIdx.x
    odd = t // 32 % 2
    i = cuda.blockIdx.x * cuda.blockDim.x + t // 64 * 64 + 2 * (t % 32) + odd
    if i < out.size:
        if odd:
            out[i] = x[i]
        else:
            out[i] = stir(x[i])
