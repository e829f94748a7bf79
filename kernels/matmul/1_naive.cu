// 1. One thread an element of C = A · B; neighbouring threads of a warp take neighbouring rows.
// A is m × k, B is k × n, C is m × n, all float32 in row-major order, of any size.
// Changed: the first step. Each thread reads a row of A and a column of B, 2k words for 2k operations.
extern "C" __global__ void matmul_naive(const float *a, const float *b, float *c, int m, int n, int k) {
    const int row = blockIdx.y * blockDim.x + threadIdx.x, column = blockIdx.x * blockDim.y + threadIdx.y;
    if (row < m && column < n) {
        float sum = 0;
        for (int i = 0; i < k; i++) {
            sum += a[size_t(row) * k + i] * b[size_t(i) * n + column];
        }
        c[size_t(row) * n + column] = sum;
    }
}
