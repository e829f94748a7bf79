from numba import cuda, float32


@cuda.jit
def triu_matmul(A, B, C, N):
    j, i = cuda.grid(2)
    if i < N and j < N:
        total = float32(0)
        for k in range(i, j + 1):
            total += A[i, k] * B[k, j]
        C[i, j] = total
