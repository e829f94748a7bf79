# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: one thread does too much of the work
from warplab import cuda


@cuda.jit
def mixed(x, out):
    t = cuda.threadIdx.x
    if t < 64:
        first = cuda.blockIdx.x * cuda.blockDim.x + 2 * (t % 32) + t // 32
        for i in range(first, min(first + cuda.blockDim.x, out.size), 64):
            if t // 32:
                out[i] = fold(x[i])
            else:
                out[i] = stir(x[i])
