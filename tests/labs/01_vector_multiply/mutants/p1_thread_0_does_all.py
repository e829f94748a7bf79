# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: one thread does too much of the work[\s\S]*thread 0 of block 0
from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    if cuda.grid(1) == 0:
        for i in range(c.size):
            c[i] = a[i] * b[i]
