// 5. Each thread computes 8 × 8 elements of C.
// Changed: 16 words from shared memory serve 64 multiply-adds, where 9 served 8. The block's tile is 128 × 128.
// Expected: half the global sectors again and a quarter of the words from shared memory; fewer threads, each with more
// independent work. Two blocks on a multiprocessor, hence at most 128 registers: enough for compute capability 9.0, while
// others (7.5 to 8.9, 10.0, 12.0; CUDA 13.0) spill 24 to 120 bytes.
// Reached: 28.3 TFLOP/s, 0.548 of cuBLAS. ncu: 1.34e8 sectors, 7.1e8 passes through shared memory, still 1.3
// instructions for each multiply-add. A thread's eight columns lie side by side: lanes conflict in the banks, and each
// store of C touches 32 sectors.
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
