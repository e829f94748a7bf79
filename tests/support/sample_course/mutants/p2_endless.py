# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: does not end

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    i = cuda.grid(1)
    while i < c.size:
        c[i] = a[i] * b[i]
