# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: wrote 871 elements past the end of c, up to index 999 of an array of 129

from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    for i in range(cuda.grid(1), 1000, cuda.gridsize(1)):
        c[i] = a[i] * b[i]
