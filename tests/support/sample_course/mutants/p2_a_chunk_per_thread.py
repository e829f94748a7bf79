# problem: multiply-any-grid
# loses: any-grid-frugal
# reason: too many sectors per load request(.|\n)*expected +at most 4

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    chunk = (c.size + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    first = cuda.grid(1) * chunk
    for i in range(first, min(first + chunk, c.size)):
        c[i] = a[i] * b[i]
