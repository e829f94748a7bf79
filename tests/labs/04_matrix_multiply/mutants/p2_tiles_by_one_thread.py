# problem: distances
# loses: distances-right, distances-sectors, distances-banks
# reason: one thread does too much of the work
from warplab import cuda


@cuda.jit
def distances(x, y, d):
    own = cuda.shared.array((TILE, TILE), float32)
    other = cuda.shared.array((TILE, 17), float32)
    across, down = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = float32(0)
    for start in range(0, x.shape[1], TILE):
        if across == 0 and down == 0:
            for i in range(TILE):
                for k in range(TILE):
                    own[i, k] = x[row + i, start + k]
                    other[i, k] = y[column + i, start + k]
        cuda.syncthreads()
        for k in range(TILE):
            step = own[down, k] - other[across, k]
            total += step * step
        cuda.syncthreads()
    d[row, column] = total
