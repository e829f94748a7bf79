import math

from numba import cuda, float32


@cuda.jit
def gelu(x, y, rows, columns):
    j, i = cuda.grid(2)
    if i < rows and j < columns:
        v = x[i, j]
        y[i, j] = float32(0.5) * v * (float32(1) + math.erf(v * float32(0.70710678)))
