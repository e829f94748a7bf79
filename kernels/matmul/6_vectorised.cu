// 6. Step 5 with four words per access; the tile of A is stored transposed.
// Changed: global and shared memory are read and written as float4. For this the eight rows of a thread must lie side
// by side in shared memory, so the tile of A is transposed on its way in. Where a row does not start at a multiple of
// 16 bytes, global memory is read word by word.
// Expected: a quarter of the load and store instructions; as many sectors and passes as before.
// Reached: 32.1 TFLOP/s, 0.621 of cuBLAS. ncu: 1.18 instructions for each multiply-add, where there were 1.32; 7.25e8
// passes through shared memory, for the lanes' float4 are two apart and conflict as before.
constexpr int BM = 128, BN = 128;  // rows and columns of the tile of C that a block computes
constexpr int BK = 8;              // depth of the tiles it loads
constexpr int TM = 8, TN = 8;      // rows and columns that a thread computes
constexpr int THREADS = BM / TM * (BN / TN);

// Four neighbouring elements of a row of a matrix, zeros outside. ALIGNED: the matrix and all its rows start at
// multiples of 16 bytes, so that one load does.
template <bool ALIGNED>
__device__ __forceinline__ float4 load4(const float *matrix, int rows, int columns, int row, int column) {
    const float *const from = matrix + size_t(row) * columns + column;
    float4 v = {};
    if (ALIGNED) {
        return row < rows && column < columns ? *reinterpret_cast<const float4 *>(from) : v;
    }
    if (row < rows) {
        v.x = column < columns ? from[0] : 0;
        v.y = column + 1 < columns ? from[1] : 0;
        v.z = column + 2 < columns ? from[2] : 0;
        v.w = column + 3 < columns ? from[3] : 0;
    }
    return v;
}

// Writes four neighbouring elements of a row of a matrix, those that lie in it.
template <bool ALIGNED>
__device__ __forceinline__ void store4(float *matrix, int rows, int columns, int row, int column, const float *values) {
    float *const to = matrix + size_t(row) * columns + column;
    if constexpr (ALIGNED) {
        if (row < rows && column < columns) {
            *reinterpret_cast<float4 *>(to) = make_float4(values[0], values[1], values[2], values[3]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (row < rows && column + i < columns) {
                to[i] = values[i];
            }
        }
    }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    matmul_vectorised(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ __align__(16) float a_tile[BK][BM], b_tile[BK][BN];
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const int x = threadIdx.x % (BN / TN) * TN, y = threadIdx.x / (BN / TN) * TM;  // of the tile of C
    // The four neighbours that a thread loads of each tile: BM * BK == BK * BN == 4 * THREADS.
    const int a_k = threadIdx.x % (BK / 4) * 4, a_row = threadIdx.x / (BK / 4);
    const int b_column = threadIdx.x % (BN / 4) * 4, b_k = threadIdx.x / (BN / 4);
    float sum[TM][TN] = {}, a_part[TM], b_part[TN];
    for (int start = 0; start < k; start += BK) {
        const float4 of_a = load4<ALIGNED>(a, m, k, first_row + a_row, start + a_k);
        a_tile[a_k][a_row] = of_a.x, a_tile[a_k + 1][a_row] = of_a.y;
        a_tile[a_k + 2][a_row] = of_a.z, a_tile[a_k + 3][a_row] = of_a.w;
        *reinterpret_cast<float4 *>(&b_tile[b_k][b_column]) =
            load4<ALIGNED>(b, k, n, start + b_k, first_column + b_column);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < BK; i++) {
#pragma unroll
            for (int r = 0; r < TM; r += 4) {
                *reinterpret_cast<float4 *>(a_part + r) = *reinterpret_cast<const float4 *>(&a_tile[i][y + r]);
            }
#pragma unroll
            for (int s = 0; s < TN; s += 4) {
                *reinterpret_cast<float4 *>(b_part + s) = *reinterpret_cast<const float4 *>(&b_tile[i][x + s]);
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
        for (int s = 0; s < TN; s += 4) {
            store4<ALIGNED>(c, m, n, first_row + y + r, first_column + x + s, &sum[r][s]);
        }
    }
}
