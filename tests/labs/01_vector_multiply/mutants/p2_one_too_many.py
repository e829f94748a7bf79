# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: wrote one element past the end of c, index 1000 of an array of 1000

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    for i in range(cuda.grid(1), c.size + 1, cuda.gridsize(1)):
        c[i] = a[i] * b[i]
