// 1. One thread per element of C = A · B; neighbouring threads of a warp take neighbouring rows.
// a is m × k, b is k × n, c is m × n, all float32 in row-major order, of any size. 2 · m · n · k operations.
// Expected: a warp reads 32 rows of A at one column, 32 sectors per request, of which it uses an eighth; B's element is
// the same for all. 33 sectors for 64 operations: far from the peak of fused multiply-adds.
// Reached: 0.5 TFLOP/s, 0.00968 of cuBLAS. ncu: 7.09e10 sectors; the L1 cache's data path is busy for
// 99 % of the time.
// Measured, in all steps: 4096 × 4096 × 4096, NVIDIA H100 80GB HBM3, 2026-11-27, in one run with cuBLAS (51.7 TFLOP/s)
// and the peak of peak.cu (66 TFLOP/s). ncu: Nsight Compute, same day.
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
