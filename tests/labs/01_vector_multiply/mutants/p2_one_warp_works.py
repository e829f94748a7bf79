# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: one thread does too much of the work
from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    if cuda.grid(1) < 32:
        for i in range(cuda.grid(1), c.size, min(32, cuda.gridsize(1))):
            c[i] = a[i] * b[i]
