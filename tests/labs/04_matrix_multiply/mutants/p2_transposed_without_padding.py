# problem: distances
# loses: distances-banks
# reason: too many shared store bank conflicts(.|\n)*at most 64

from numba import float32

from warplab import cuda

TILE = 16


@cuda.jit
def distances(x, y, d):
    """d[i, j] = squared distance between row i of x and row j of y; blocks of TILE x TILE threads."""
    own = cuda.shared.array((TILE, TILE), float32)
    other = cuda.shared.array((TILE, TILE), float32)
    across, down = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = float32(0)
    for start in range(0, x.shape[1], TILE):
        own[down, across] = x[row, start + across]
        other[across, down] = y[cuda.blockIdx.x * TILE + down, start + across]
        cuda.syncthreads()
        for k in range(TILE):
            step = own[down, k] - other[k, across]
            total += step * step
        cuda.syncthreads()
    d[row, column] = total
