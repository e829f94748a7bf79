# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: wrote nothing

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    total = 0.0
    for i in range(cuda.grid(1), c.size, cuda.gridsize(1)):
        total += a[i] * b[i]
