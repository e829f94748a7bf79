from numba import cuda, float32


@cuda.jit
def sum_middle(x, y, length, columns):
    j = cuda.grid(1)
    b = cuda.blockIdx.y
    if j < columns:
        total = float32(0)
        for k in range(length):
            total += x[b, k, j]
        y[b, 0, j] = total
