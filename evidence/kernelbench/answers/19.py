from numba import cuda, float32


@cuda.jit
def relu(x, y, rows, columns):
    j, i = cuda.grid(2)
    if i < rows and j < columns:
        y[i, j] = max(x[i, j], float32(0))
