// 2. Step 1 with tiles of A and B in shared memory.
// Changed: a block of 8 warps computes 128 × 128 elements, a warp 64 × 32 of them, 8 fragments. What comes next is
// loaded into registers, 16 bytes a load, while the tensor cores work, and stored to the other of two pairs of tiles.
// Rows of the tiles are 16 bytes further apart than they are long, so that eight of them lie in different banks.
// Expected: 64 operations a byte of global memory, eight times step 1, so the L2 cache is no longer the limit. A warp
// reads 3072 bytes of shared memory for 8 products of 16 × 16 × 16: 24 passes for 65,536 operations, which the tensor
// cores of a multiprocessor of an H100 could do in 16 clocks. So shared memory is the next limit, at two thirds.
// m and n are multiples of 16, k of 8; `multiply` pads what does not fit.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

constexpr int BM = 128, BN = 128;  // rows and columns of the tile of C that a block computes
constexpr int BK = 32;             // depth of the tiles it loads
constexpr int WM = 64, WN = 32;    // rows and columns that a warp computes
constexpr int TILE = 16;           // of a fragment
constexpr int THREADS = BM / WM * (BN / WN) * 32;
constexpr int PAD = 8;                                        // elements, 16 bytes
constexpr int A_LINE = BK / 8, B_LINE = BN / 8;               // loads of 16 bytes for a row of a tile
constexpr int A_ROWS = THREADS / A_LINE, B_ROWS = THREADS / B_LINE;  // that the block loads at a time
constexpr int A_LOADS = BM / A_ROWS, B_LOADS = BK / B_ROWS;   // of a thread for a tile

using Sum = wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float>;

__device__ __forceinline__ void store(float *c, int n, const Sum &sum) {
    wmma::store_matrix_sync(c, sum, n, wmma::mem_row_major);
}

__device__ __forceinline__ void store(half *c, int n, const Sum &sum) {
    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, half> rounded;
#pragma unroll
    for (int i = 0; i < rounded.num_elements; i++) {
        rounded.x[i] = __float2half(sum.x[i]);
    }
    wmma::store_matrix_sync(c, rounded, n, wmma::mem_row_major);
}

// Eight neighbouring elements of a row of a matrix, zeros outside.
__device__ __forceinline__ uint4 load8(const half *matrix, int rows, int columns, int row, int column) {
    const uint4 zeros = {};
    return row < rows && column < columns
               ? *reinterpret_cast<const uint4 *>(matrix + size_t(row) * columns + column)
               : zeros;
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
    tensor_core_wmma_shared(const half *a, const half *b, T *c, int m, int n, int k) {
    __shared__ __align__(32) half a_tile[2][BM][BK + PAD], b_tile[2][BK][BN + PAD];
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const int warp = threadIdx.x / 32, y = warp / (BN / WN) * WM, x = warp % (BN / WN) * WN;  // of the tile of C
    const int a_row = threadIdx.x / A_LINE, a_column = threadIdx.x % A_LINE * 8;
    const int b_row = threadIdx.x / B_LINE, b_column = threadIdx.x % B_LINE * 8;
    uint4 next_a[A_LOADS], next_b[B_LOADS];
    auto load = [&](int start) {
#pragma unroll
        for (int i = 0; i < A_LOADS; i++) {
            next_a[i] = load8(a, m, k, first_row + a_row + i * A_ROWS, start + a_column);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; i++) {
            next_b[i] = load8(b, k, n, start + b_row + i * B_ROWS, first_column + b_column);
        }
    };
    auto keep = [&](int stage) {
#pragma unroll
        for (int i = 0; i < A_LOADS; i++) {
            *reinterpret_cast<uint4 *>(&a_tile[stage][a_row + i * A_ROWS][a_column]) = next_a[i];
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; i++) {
            *reinterpret_cast<uint4 *>(&b_tile[stage][b_row + i * B_ROWS][b_column]) = next_b[i];
        }
    };

    Sum sum[WM / TILE][WN / TILE];
#pragma unroll
    for (int r = 0; r < WM / TILE; r++) {
#pragma unroll
        for (int s = 0; s < WN / TILE; s++) {
            wmma::fill_fragment(sum[r][s], 0.0f);
        }
    }
    load(0);
    keep(0);
    __syncthreads();
    for (int start = 0, now = 0; start < k; start += BK, now ^= 1) {
        if (start + BK < k) {
            load(start + BK);
        }
#pragma unroll
        for (int i = 0; i < BK; i += TILE) {
            wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, half, wmma::row_major> of_a;
            wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, half, wmma::row_major> of_b[WN / TILE];
#pragma unroll
            for (int s = 0; s < WN / TILE; s++) {
                wmma::load_matrix_sync(of_b[s], &b_tile[now][i][x + s * TILE], BN + PAD);
            }
#pragma unroll
            for (int r = 0; r < WM / TILE; r++) {
                wmma::load_matrix_sync(of_a, &a_tile[now][y + r * TILE][i], BK + PAD);
#pragma unroll
                for (int s = 0; s < WN / TILE; s++) {
                    wmma::mma_sync(sum[r][s], of_a, of_b[s], sum[r][s]);
                }
            }
        }
        if (start + BK < k) {
            keep(now ^ 1);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < WM / TILE; r++) {
#pragma unroll
        for (int s = 0; s < WN / TILE; s++) {
            const int row = first_row + y + r * TILE, column = first_column + x + s * TILE;
            if (row < m && column < n) {
                store(c + size_t(row) * n + column, n, sum[r][s]);
            }
        }
    }
}
