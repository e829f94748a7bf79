# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: the last of 1000 elements was never written

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    for i in range(cuda.grid(1), c.size - 1, cuda.gridsize(1)):
        c[i] = a[i] * b[i]
