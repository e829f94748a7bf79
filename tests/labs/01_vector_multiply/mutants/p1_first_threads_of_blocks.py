# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: one thread does too much of the work[\s\S]*thread 0 of block
from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    if cuda.threadIdx.x == 0:
        first = cuda.grid(1)
        for i in range(first, min(first + cuda.blockDim.x, c.size)):
            c[i] = a[i] * b[i]
