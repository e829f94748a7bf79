# problem: turn
# loses: turn-right, turn-sectors, turn-banks
# reason: wrong language

from warplab import cuda


@cuda.jit
def turn(a, t, rows, columns):
    x = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    y = cuda.blockIdx.y * 32 + cuda.threadIdx.y
    for k in range(0, 32, 8):
        if x < columns and y + k < rows:
            t[x, y + k] = a[y + k, x]
