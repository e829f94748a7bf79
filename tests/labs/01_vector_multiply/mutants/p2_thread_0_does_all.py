# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: one thread does too much of the work[\s\S]*thread 0 of block 0
from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    if cuda.grid(1) == 0:
        for i in range(c.size):
            c[i] = a[i] * b[i]
