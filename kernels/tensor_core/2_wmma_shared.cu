// 2. Step 1 with tiles of A and B in shared memory.
// Changed: a block of 4 warps computes 128 × 128 elements, a warp 64 × 64 of them, 16 fragments. Asynchronous copies
// (lab 04) bring the tiles for the next 64 of k while the tensor cores use those before: two pairs of tiles. Rows of
// the tiles are 16 bytes further apart than they are long, so that eight of them lie in different banks. The copies go
// through the L1 cache (ca): past it (cg) they go from a line of 128 bytes to a line, and the padded rows lie across
// two, which takes 42 passes instead of 16.
// Expected: 64 operations per byte of global memory, eight times step 1, so the L2 cache is no longer the limit. For 16
// of k a warp has 131,072 operations, which the tensor cores of a multiprocessor of an H100 could do in 32 clocks. It
// reads 4096 bytes of shared memory for them, 32 passes, and copies 2048 bytes there, 16 passes. So shared memory is
// the next limit, at two thirds of the tensor cores' rate.
// Reached: 326 TFLOP/s, 0.431 of the library. ncu, in a run with 358: 0.60 of the rate of mma_peak (peak.cu), and
// shared memory is busy for 66 % of the time. Fragments are loaded right before their use, and a scheduler has only
// two warps to fill that gap. In one run ca had 352 TFLOP/s, and cg 279.
// m and n are multiples of 16, k of 8; `multiply` pads what does not fit.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

constexpr int BM = 128, BN = 128;  // rows and columns of the tile of C that a block computes
constexpr int BK = 64;             // depth of the tiles it loads
constexpr int WM = 64, WN = 64;    // rows and columns that a warp computes
constexpr int TILE = 16;           // of a fragment
constexpr int THREADS = BM / WM * (BN / WN) * 32;
constexpr int PAD = 8;                                               // elements, 16 bytes
constexpr int A_LINE = BK / 8, B_LINE = BN / 8;                      // copies of 16 bytes for a row of a tile
constexpr int A_ROWS = THREADS / A_LINE, B_ROWS = THREADS / B_LINE;  // that the block copies at a time

using TileOfA = half[BM][BK + PAD];
using TileOfB = half[BK][BN + PAD];
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

// Starts a copy of eight neighbouring elements of a row of a matrix to shared memory; of zeros, outside.
__device__ __forceinline__ void copy8(half *to, const half *matrix, int rows, int columns, int row, int column) {
    const bool inside = row < rows && column < columns;
    const half *from = matrix + (inside ? size_t(row) * columns + column : 0);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(inside ? 16 : 0)
                 : "memory");  // not needed where __syncthreads() follows, as here; step 4 leaves it out
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
    tensor_core_wmma_shared(const half *a, const half *b, T *c, int m, int n, int k) {
    extern __shared__ __align__(128) half memory[];
    TileOfA *const a_tile = reinterpret_cast<TileOfA *>(memory);      // two of them,
    TileOfB *const b_tile = reinterpret_cast<TileOfB *>(a_tile + 2);  // and two of these
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const int warp = threadIdx.x / 32, y = warp / (BN / WN) * WM, x = warp % (BN / WN) * WN;  // of the tile of C
    const int a_row = threadIdx.x / A_LINE, a_column = threadIdx.x % A_LINE * 8;
    const int b_row = threadIdx.x / B_LINE, b_column = threadIdx.x % B_LINE * 8;
    auto copy_tiles = [&](int to, int start) {
#pragma unroll
        for (int i = 0; i < BM; i += A_ROWS) {
            copy8(&a_tile[to][a_row + i][a_column], a, m, k, first_row + a_row + i, start + a_column);
        }
#pragma unroll
        for (int i = 0; i < BK; i += B_ROWS) {
            copy8(&b_tile[to][b_row + i][b_column], b, k, n, start + b_row + i, first_column + b_column);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    Sum sum[WM / TILE][WN / TILE];
#pragma unroll
    for (int r = 0; r < WM / TILE; r++) {
#pragma unroll
        for (int s = 0; s < WN / TILE; s++) {
            wmma::fill_fragment(sum[r][s], 0.0f);
        }
    }
    copy_tiles(0, 0);
    for (int start = 0, now = 0; start < k; start += BK, now ^= 1) {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();  // all copies have arrived, and no warp still reads the tiles that the next ones go to
        if (start + BK < k) {
            copy_tiles(now ^ 1, start + BK);
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
