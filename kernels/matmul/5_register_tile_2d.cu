// 5. Each thread computes 8 × 8 elements of C.
constexpr int BM = 128, BN = 128;  // rows and columns of the tile of C that a block computes
constexpr int BK = 8;              // depth of the tiles it loads
constexpr int TM = 8, TN = 8;      // rows and columns that a thread computes
constexpr int THREADS = BM / TM * (BN / TN);

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    matmul_register_tile_2d(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float a_tile[BM][BK], b_tile[BK][BN];
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const int x = threadIdx.x % (BN / TN) * TN, y = threadIdx.x / (BN / TN) * TM;  // of the tile of C
    float sum[TM][TN] = {}, a_part[TM], b_part[TN];
    for (int start = 0; start < k; start += BK) {
#pragma unroll
        for (int i = 0; i < BM * BK; i += THREADS) {
            const int at = i + threadIdx.x, row = first_row + at / BK, depth = start + at % BK;
            a_tile[at / BK][at % BK] = row < m && depth < k ? a[size_t(row) * k + depth] : 0;
        }
#pragma unroll
        for (int i = 0; i < BK * BN; i += THREADS) {
            const int at = i + threadIdx.x, depth = start + at / BN, column = first_column + at % BN;
            b_tile[at / BN][at % BN] = depth < k && column < n ? b[size_t(depth) * n + column] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < BK; i++) {
#pragma unroll
            for (int r = 0; r < TM; r++) {
                a_part[r] = a_tile[y + r][i];
            }
#pragma unroll
            for (int s = 0; s < TN; s++) {
                b_part[s] = b_tile[i][x + s];
            }
#pragma unroll
            for (int r = 0; r < TM; r++) {
#pragma unroll
                for (int s = 0; s < TN; s++) {
                    sum[r][s] += a_part[r] * b_part[s];
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < TM; r++) {
#pragma unroll
        for (int s = 0; s < TN; s++) {
            const int row = first_row + y + r, column = first_column + x + s;
            if (row < m && column < n) {
                c[size_t(row) * n + column] = sum[r][s];
            }
        }
    }
}
