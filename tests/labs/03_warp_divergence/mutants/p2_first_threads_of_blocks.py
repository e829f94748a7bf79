# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: one thread does too much of the work[\s\S]*thread 0 of block
from warplab import cuda


@cuda.jit
def mixed(x, out):
    if cuda.threadIdx.x == 0:
        first = cuda.blockIdx.x * cuda.blockDim.x
        for i in range(first, min(first + cuda.blockDim.x, out.size), 2):
            out[i] = stir(x[i])
            if i + 1 < out.size:
                out[i + 1] = fold(x[i + 1])
