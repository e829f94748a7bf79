// 3. Step 2 with mma.sync m16n8k16 and ldmatrix in place of wmma, on swizzled tiles.
// Changed: PTX says which lane holds which element of a fragment, so the result goes from registers to its place, also
// where C ends within a fragment. Four 8 × 8 matrices come with one ldmatrix; those of B are transposed on the way. No
// padding: the 16-byte chunks of a row are exchanged by the row's number instead, which spreads eight rows of one
// column over all banks. Rows are whole lines then, and copies go past the L1 cache.
// Expected: the same products and the same passes through shared memory as step 2, so hardly faster; but 9 % less
// shared memory, no multiples of 16, and every register at hand for step 4.
// Reached: 333 TFLOP/s, 0.441 of the library. ncu, in a run with 374: shared memory is busy for 43 % of the time and
// not 66, but that was not what held step 2 back: 0.62 of the rate of mma_peak.
// n and k are multiples of 8; `multiply` pads what does not fit.
#include <cuda_fp16.h>

constexpr int BM = 128, BN = 128;  // rows and columns of the tile of C that a block computes
constexpr int BK = 64;             // depth of the tiles it loads: rows of A are 128 bytes, all banks once
constexpr int WM = 64, WN = 64;    // rows and columns that a warp computes
constexpr int THREADS = BM / WM * (BN / WN) * 32;
constexpr int A_LINE = BK / 8, B_LINE = BN / 8;                      // chunks of 16 bytes in a row of a tile
constexpr int A_ROWS = THREADS / A_LINE, B_ROWS = THREADS / B_LINE;  // that the block copies at a time

using TileOfA = uint4[BM * A_LINE];
using TileOfB = uint4[BK * B_LINE];

// Where a chunk of a row of a tile lies, in chunks.
template <int LINE>
__device__ __forceinline__ int place(int row, int chunk) {
    static_assert(LINE % 8 == 0, "rows are all banks, once or more often");
    return row * LINE + (chunk ^ (row % 8));
}

// Four matrices of 8 × 8 elements; lane 8i + j gives the address of row j of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const uint4 *row) {
    const unsigned address = unsigned(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

__device__ __forceinline__ void load_transposed(unsigned (&to)[4], const uint4 *row) {
    const unsigned address = unsigned(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

// sum += a · b for 16 × 16 by 16 × 8.
__device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two neighbouring elements of a row.
__device__ __forceinline__ void store2(float *to, float x, float y) {
    *reinterpret_cast<float2 *>(to) = make_float2(x, y);
}

__device__ __forceinline__ void store2(half *to, float x, float y) {
    *reinterpret_cast<half2 *>(to) = __floats2half2_rn(x, y);
}

// Starts a copy of eight neighbouring elements of a row of a matrix to shared memory; of zeros, outside.
__device__ __forceinline__ void copy8(uint4 *to, const half *matrix, int rows, int columns, int row, int column) {
    const bool inside = row < rows && column < columns;
    const half *from = matrix + (inside ? size_t(row) * columns + column : 0);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(inside ? 16 : 0)
                 : "memory");  // not needed where __syncthreads() follows, as here; step 4 leaves it out
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
    tensor_core_mma_swizzled(const half *a, const half *b, T *c, int m, int n, int k) {
    extern __shared__ __align__(128) uint4 memory[];
    TileOfA *const a_tile = reinterpret_cast<TileOfA *>(memory);      // two of them,
    TileOfB *const b_tile = reinterpret_cast<TileOfB *>(a_tile + 2);  // and two of these
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int y = warp / (BN / WN) * WM, x = warp % (BN / WN) * WN;  // of the tile of C
    const int a_row = threadIdx.x / A_LINE, a_chunk = threadIdx.x % A_LINE;
    const int b_row = threadIdx.x / B_LINE, b_chunk = threadIdx.x % B_LINE;
    auto copy_tiles = [&](int to, int start) {
#pragma unroll
        for (int i = 0; i < BM; i += A_ROWS) {
            const int row = a_row + i;
            copy8(&a_tile[to][place<A_LINE>(row, a_chunk)], a, m, k, first_row + row, start + a_chunk * 8);
        }
#pragma unroll
        for (int i = 0; i < BK; i += B_ROWS) {
            const int row = b_row + i;
            copy8(&b_tile[to][place<B_LINE>(row, b_chunk)], b, k, n, start + row, first_column + b_chunk * 8);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float sum[WM / 16][WN / 8][4] = {};
    copy_tiles(0, 0);
    for (int start = 0, now = 0; start < k; start += BK, now ^= 1) {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();  // all copies have arrived, and no warp still reads the tiles that the next ones go to
        if (start + BK < k) {
            copy_tiles(now ^ 1, start + BK);
        }
#pragma unroll
        for (int i = 0; i < BK; i += 16) {
            unsigned of_a[4], of_b[WN / 16][4];  // of_b: the two halves along k of two fragments of eight columns
#pragma unroll
            for (int s = 0; s < WN / 16; s++) {
                load_transposed(of_b[s], &b_tile[now][place<B_LINE>(i + lane % 16, x / 8 + 2 * s + lane / 16)]);
            }
#pragma unroll
            for (int r = 0; r < WM / 16; r++) {
                load_matrices(of_a, &a_tile[now][place<A_LINE>(y + 16 * r + lane % 16, i / 8 + lane / 16)]);
#pragma unroll
                for (int s = 0; s < WN / 8; s++) {
                    multiply_add(sum[r][s], of_a, of_b[s / 2][s % 2 * 2], of_b[s / 2][s % 2 * 2 + 1]);
                }
            }
        }
    }
    // Of each 16 × 8 elements, a lane holds two of row lane / 4 and two of the row eight below.
#pragma unroll
    for (int r = 0; r < WM / 16; r++) {
#pragma unroll
        for (int s = 0; s < WN / 8; s++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int row = first_row + y + 16 * r + 8 * h + lane / 4;
                const int column = first_column + x + 8 * s + lane % 4 * 2;
                if (row < m && column < n) {
                    store2(c + size_t(row) * n + column, sum[r][s][2 * h], sum[r][s][2 * h + 1]);
                }
            }
        }
    }
}
