// 8. Step 7 with asynchronous copies into two pairs of tiles: one is loaded while the other is used.
// Changed: cp.async writes to shared memory without passing through registers, four bytes at a time for A, which is
// transposed on the way, and 16 for B where its rows allow it. Outside the matrices it writes zeros.
// Expected: warps no longer wait for global memory; in step 7 no instruction is issued in 39 % of the clocks.
// Reached: 43.4 TFLOP/s, 0.839 of cuBLAS. ncu: an instruction is issued in 80 % of the clocks, where it was 61 %; but
// 1.19 are needed for each multiply-add, for addresses and bounds.
constexpr int BM = 128, BN = 128;  // rows and columns of the tile of C that a block computes
constexpr int BK = 8;              // depth of the tiles it loads
constexpr int WM = 64, WN = 32;    // rows and columns that a warp computes
constexpr int TM = 8, TN = 8;      // rows and columns that a thread computes
constexpr int THREADS = BM / WM * (BN / WN) * 32;
constexpr int M_STEP = WM / (TM / 4), N_STEP = WN / (TN / 4);  // from a four of a thread's rows or columns to the next
constexpr int PITCH = BM + 4;                                  // of the tile of A

// Starts a copy of BYTES (4 or 16) to shared memory; zeros instead, where the source does not lie in its matrix.
template <int BYTES>
__device__ __forceinline__ void copy(float *to, const float *from, bool inside) {
    const unsigned address = unsigned(__cvta_generic_to_shared(to));
    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(inside ? 16 : 0));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(inside ? 4 : 0));
    }
}

// Starts the copies of the tiles of A and B at depth `start`, as one group.
template <bool ALIGNED>
__device__ __forceinline__ void copy_tiles(float (*a_tile)[PITCH], float (*b_tile)[BN], const float *a, const float *b,
                                           int m, int n, int k, int first_row, int first_column, int start) {
#pragma unroll
    for (int i = 0; i < BM * BK; i += THREADS) {
        const int at = i + threadIdx.x, row = first_row + at / BK, depth = start + at % BK;
        copy<4>(&a_tile[at % BK][at / BK], a + size_t(row) * k + depth, row < m && depth < k);
    }
    constexpr int WORDS = ALIGNED ? 4 : 1;
#pragma unroll
    for (int i = 0; i < BK * BN; i += WORDS * THREADS) {
        const int at = i + WORDS * threadIdx.x, depth = start + at / BN, column = first_column + at % BN;
        copy<4 * WORDS>(&b_tile[at / BN][at % BN], b + size_t(depth) * n + column, depth < k && column < n);
    }
    asm volatile("cp.async.commit_group;");
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
__global__ void __launch_bounds__(THREADS, 2)
    matmul_async_copies(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ __align__(16) float a_tile[2][BK][PITCH], b_tile[2][BK][BN];
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    // The 32 lanes are 8 down and 4 across. Bits 0 and 2 of the lane's number say which across, the others which down:
    // so lanes i and i ^ 1 read the same of A, lanes i and i ^ 2 the same of B.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int down = (lane >> 1 & 1) | (lane >> 2 & 6), across = (lane & 1) | (lane >> 1 & 2);
    const int y = warp / (BN / WN) * WM + 4 * down, x = warp % (BN / WN) * WN + 4 * across;  // of the tile of C
    float sum[TM][TN] = {}, a_part[TM], b_part[TN];
    copy_tiles<ALIGNED>(a_tile[0], b_tile[0], a, b, m, n, k, first_row, first_column, 0);
    for (int start = 0, now = 0; start < k; start += BK, now ^= 1) {
        if (start + BK < k) {
            copy_tiles<ALIGNED>(a_tile[now ^ 1], b_tile[now ^ 1], a, b, m, n, k, first_row, first_column, start + BK);
            asm volatile("cp.async.wait_group 1;");  // for all but the latest group
        } else {
            asm volatile("cp.async.wait_group 0;");  // needs no "memory" clobber where __syncthreads() follows
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < BK; i++) {
#pragma unroll
            for (int r = 0; r < TM; r += 4) {
                *reinterpret_cast<float4 *>(a_part + r) =
                    *reinterpret_cast<const float4 *>(&a_tile[now][i][y + r / 4 * M_STEP]);
            }
#pragma unroll
            for (int s = 0; s < TN; s += 4) {
                *reinterpret_cast<float4 *>(b_part + s) =
                    *reinterpret_cast<const float4 *>(&b_tile[now][i][x + s / 4 * N_STEP]);
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
            store4<ALIGNED>(c, m, n, first_row + y + r / 4 * M_STEP + r % 4, first_column + x + s / 4 * N_STEP,
                            &sum[r][s]);
        }
    }
}
