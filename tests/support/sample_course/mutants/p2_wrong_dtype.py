# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: cut to a whole number

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    for i in range(cuda.grid(1), c.size, cuda.gridsize(1)):
        c[i] = int(a[i] * b[i])
