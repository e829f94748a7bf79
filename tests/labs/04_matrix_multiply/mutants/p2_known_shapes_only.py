# problem: distances
# loses: distances-sectors, distances-banks
# reason: too many global load sectors

from numba import float32

from warplab import cuda

TILE = 16


@cuda.jit
def distances(x, y, d):
    own = cuda.shared.array((TILE, TILE), float32)
    other = cuda.shared.array((TILE, 17), float32)
    across, down = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = float32(0)
    shape = 10000 * x.shape[0] + 100 * y.shape[0] + x.shape[1]
    if shape == 324832 or shape == 321632 or shape == 161664 or shape == 481648 or shape == 164848:
        for start in range(0, x.shape[1], TILE):
            own[down, across] = x[row, start + across]
            other[down, across] = y[cuda.blockIdx.x * TILE + down, start + across]
            cuda.syncthreads()
            for k in range(TILE):
                step = own[down, k] - other[across, k]
                total += step * step
            cuda.syncthreads()
    else:
        for k in range(x.shape[1]):
            step = x[row, k] - y[column, k]
            total += step * step
    d[row, column] = total
