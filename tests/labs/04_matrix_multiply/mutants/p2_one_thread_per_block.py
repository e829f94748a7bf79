# problem: distances
# loses: distances-right, distances-sectors, distances-banks
# reason: one thread does too much of the work|does not end
from warplab import cuda


@cuda.jit
def distances(x, y, d):
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        for row in range(TILE * cuda.blockIdx.y, TILE * cuda.blockIdx.y + TILE):
            for column in range(TILE * cuda.blockIdx.x, TILE * cuda.blockIdx.x + TILE):
                total = float32(0)
                for k in range(x.shape[1]):
                    step = x[row, k] - y[column, k]
                    total += step * step
                d[row, column] = total
