# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: too much of the work|too many warp instructions|the warp efficiency is too low
from warplab import cuda


@cuda.jit
def multiply_any_grid(a, b, c):
    for turn in range(32):
        if cuda.threadIdx.x % 32 == turn:
            for i in range(cuda.grid(1), c.size, cuda.gridsize(1)):
                c[i] = a[i] * b[i]
