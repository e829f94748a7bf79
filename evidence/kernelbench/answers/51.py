from numba import cuda


@cuda.jit
def argmax_middle(x, y, length, columns):
    j = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    b = cuda.blockIdx.y
    if j < columns:
        best = 0
        for k in range(1, length):
            if x[b, k, j] > x[b, best, j]:
                best = k
        y[b, j] = best
