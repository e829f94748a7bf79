# problem: distances
# loses: distances-sectors, distances-banks
# reason: too many global load sectors(.|\n)*at most 768

from numba import float32

from warplab import cuda

TILE = 16


@cuda.jit
def distances(x, y, d):
    column, row = cuda.grid(2)
    total = float32(0)
    for k in range(x.shape[1]):
        step = x[row, k] - y[column, k]
        total += step * step
    d[row, column] = total
