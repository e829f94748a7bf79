# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: were never written|only the first

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    for i in range(cuda.grid(1), c.size, 1024):
        c[i] = a[i] * b[i]
