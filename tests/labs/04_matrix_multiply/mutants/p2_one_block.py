# problem: distances
# loses: distances-right, distances-sectors, distances-banks
# reason: one thread does too much of the work
from warplab import cuda


@cuda.jit
def distances(x, y, d):
    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:
        for row in range(cuda.threadIdx.y, d.shape[0], TILE):
            for column in range(cuda.threadIdx.x, d.shape[1], TILE):
                total = float32(0)
                for k in range(x.shape[1]):
                    step = x[row, k] - y[column, k]
                    total += step * step
                d[row, column] = total
