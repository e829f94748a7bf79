# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: the threads leave gaps

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    for i in range(cuda.threadIdx.x, c.size, cuda.gridsize(1)):
        c[i] = a[i] * b[i]
