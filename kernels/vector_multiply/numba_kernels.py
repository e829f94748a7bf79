"""Vector multiply in Numba: steps 1 and 2 of `vector_multiply.cu`.

Numba passes an array together with its shape, so the number of elements needs no argument of its own. It has no
16-byte access for float32 arrays, so step 3 exists in CUDA C++ only.
Measured as there: n = 2^28, NVIDIA H100 80GB HBM3, 2026-11-21; copy 3007 GB/s.
"""

from warplab import cuda


# 1. One thread per element. Expected: as in CUDA C++, since memory is the limit and Numba's extra index arithmetic
# hides behind it. Reached: 2778 GB/s, 0.92 of the copy.
@cuda.jit
def multiply_scalar(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * b[i]


# 2. A loop whose step is the number of threads of the grid. Expected: no bandwidth over step 1.
# Reached: 2809 GB/s, 0.93 of the copy.
@cuda.jit
def multiply_grid_stride(a, b, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a[i] * b[i]
