# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: one thread does too much of the work

from warplab import cuda


@cuda.jit
def mixed(x, out):
    first = cuda.blockIdx.x * cuda.blockDim.x
    t = cuda.threadIdx.x
    if t % 2 == 0:
        for i in range(first + t, min(first + t + 2, out.size)):
            if i % 2:
                out[i] = fold(x[i])
            else:
                out[i] = stir(x[i])
