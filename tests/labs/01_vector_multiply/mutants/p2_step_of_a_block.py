# problem: multiply-any-grid
# loses: any-grid-frugal
# reason: too many global store bytes(.|\n)*do several threads write the same element

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    for i in range(cuda.grid(1), c.size, cuda.blockDim.x):
        c[i] = a[i] * b[i]
