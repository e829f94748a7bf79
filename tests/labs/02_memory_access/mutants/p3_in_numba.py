# problem: turn
# loses: turn-right, turn-sectors, turn-banks
# reason: wrong language

from warplab import cuda


@cuda.jit
def turn(a, t, rows, columns):
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 64
    for k in range(cuda.threadIdx.x, 1024, 256):
        y, x = top + k // 64, left + k % 64
        if y < rows and x < columns:
            t[x, rows - 1 - y] = a[y, x]
