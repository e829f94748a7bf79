// 2. Step 1 with neighbouring threads on neighbouring columns.
extern "C" __global__ void matmul_coalesced(const float *a, const float *b, float *c, int m, int n, int k) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && column < n) {
        float sum = 0;
        for (int i = 0; i < k; i++) {
            sum += a[size_t(row) * k + i] * b[size_t(i) * n + column];
        }
        c[size_t(row) * n + column] = sum;
    }
}
