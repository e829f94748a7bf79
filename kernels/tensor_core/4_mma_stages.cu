// 4. Step 3 with fragments loaded ahead of their use, more stages, and larger tiles of C.
// Changed: the fragments for the next 16 of k are loaded while the last are used, also from one tile to the next.
// Copies run all but one of the stages ahead. A block computes more columns, and blocks run in groups of rows of
// tiles, so that those at work share tiles in the L2 cache. No bounds in the loop along k, because the incomplete tile
// comes first.
// Expected: for 131,072 operations a warp now reads 32 passes of shared memory and copies 12, and no longer waits for
// them. So the tensor cores become the limit: those of an H100, which mma.sync does not keep busy all the time (peak.cu
// measures it).
// Reached: 442 TFLOP/s, 0.585 of the library; mma_peak, which has nothing else to do, had 0.70 in the same run: the
// limit of any kernel with mma.sync, once the card is warm. ncu, in a run with 475: a scheduler issues one mma.sync in
// 7.3 clocks, mma_peak one in 6.0; the full rate of the tensor cores would be one in 4. Thirty other orders of loads,
// copies and products gained nothing, nor did mbarriers in place of __syncthreads(); without any wait, and so with
// wrong results, it is 1.5 % faster.
// By shape (`for_shape`, what cards without wgmma take), of the library, with these tiles and with the one for 8192³ alone:
// 512³ 0.89 and 0.34, 1024³ 0.68 and 0.32, 8192 × 128 × 4096 0.70 and 0.40, 300 × 304 × 304 0.90 and 0.38; but 128 × 256 ×
// 65536 0.07 and 0.02, as nothing splits the depth here (H100, 2026-11-26, operands in the L2 cache).
// n and k are multiples of 8; `multiply` pads what does not fit.
//
// BM, BN: rows and columns of the tile of C that a block computes. WM, WN: of a warp. STAGES: pairs of tiles in shared
// memory, of which all but one are loaded while one is used. BLOCKS: of those that a multiprocessor holds at a time, at
// least. GROUP: blocks run down so many tiles of C before they go on to the next column of tiles.
#include <cuda_fp16.h>

constexpr int BK = 64;          // depth of the tiles that a block loads: rows of A are 128 bytes, all banks once
constexpr int A_LINE = BK / 8;  // chunks of 16 bytes in a row of the tile of A

// Starts a copy of 16 bytes to shared memory. `guarded`, a constant: zeros instead, unless `inside`.
__device__ __forceinline__ void copy(unsigned to, const half *from, bool guarded, bool inside) {
    if (guarded) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0));
    } else {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
    }
}

// Four matrices of 8 × 8 elements; lane 8i + j gives the address of row j of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

__device__ __forceinline__ void load_transposed(unsigned (&to)[4], unsigned address) {
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

template <typename T, int BM, int BN, int WM, int WN, int STAGES, int BLOCKS, int GROUP>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, BLOCKS)
    tensor_core_mma_stages(const half *__restrict__ a, const half *__restrict__ b, T *__restrict__ c, int m, int n,
                           int k) {
    constexpr int THREADS = BM / WM * (BN / WN) * 32;
    constexpr int B_LINE = BN / 8;
    constexpr int A_ROWS = THREADS / A_LINE, B_ROWS = THREADS / B_LINE;  // that the block copies at a time
    constexpr int A_COPIES = BM / A_ROWS, B_COPIES = BK / B_ROWS;        // of a thread for a tile
    constexpr unsigned A_BYTES = BM * BK * sizeof(half), STAGE_BYTES = A_BYTES + BK * BN * sizeof(half);
    static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 32 == 0, "whole fragments, two of B at a time");
    static_assert(A_ROWS % 8 == 0 && B_ROWS % 8 == 0 && BM % A_ROWS == 0 && BK % B_ROWS == 0 && BN % 64 == 0,
                  "each thread copies equally many chunks, of rows that are swizzled alike");
    extern __shared__ __align__(128) uint4 memory[];
    const unsigned shared = unsigned(__cvta_generic_to_shared(memory));

    const int height = (m - 1) / BM + 1, width = (n - 1) / BN + 1;  // of C in tiles
    const int group = blockIdx.x / (GROUP * width) * GROUP, rows = min(GROUP, height - group);
    const int in_group = blockIdx.x - group * width;
    const int first_row = (group + in_group % rows) * BM, first_column = in_group / rows * BN;

    // The first tile along k takes what is left over, 8 to BK; so all others are whole. Rows and columns outside the
    // matrices are replaced by the last ones inside: their sums are never written.
    const int tiles = (k - 1) / BK + 1, first_depth = k - (tiles - 1) * BK;
    const int a_row = threadIdx.x / A_LINE, a_k = threadIdx.x % A_LINE * 8;
    const int b_k = threadIdx.x / B_LINE, b_chunk = threadIdx.x % B_LINE;
    const half *a_from[A_COPIES];
#pragma unroll
    for (int i = 0; i < A_COPIES; i++) {
        a_from[i] = a + size_t(min(first_row + a_row + i * A_ROWS, m - 1)) * k + a_k;
    }
    const half *b_from = b + size_t(b_k) * n + min(first_column + b_chunk * 8, n - 8);
    // A chunk of a row lies where chunk ^ row % 8 says. Rows that a thread copies have the same remainder.
    const unsigned a_to = shared + (a_row * A_LINE + ((a_k / 8) ^ (a_row % 8))) * 16;
    const unsigned b_to = shared + A_BYTES + (b_k * B_LINE + (b_chunk ^ (b_k % 8))) * 16;
    auto copy_tiles = [&](int stage, bool guarded, int depth) {
#pragma unroll
        for (int i = 0; i < A_COPIES; i++) {
            copy(a_to + stage * STAGE_BYTES + i * A_ROWS * A_LINE * 16, a_from[i], guarded, a_k < depth);
            a_from[i] += depth;
        }
#pragma unroll
        for (int i = 0; i < B_COPIES; i++) {
            copy(b_to + stage * STAGE_BYTES + i * B_ROWS * B_LINE * 16, b_from + size_t(i * B_ROWS) * n, guarded,
                 b_k + i * B_ROWS < depth);
        }
        b_from += size_t(depth) * n;
    };

    // Of fragments the lanes read row lane % 16, the upper half of them 8 elements further. Going on by a fragment of
    // B, or by 16 of k in A, flips bits of the chunk's number, and so of the address.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int y = warp / (BN / WN) * WM, x = warp % (BN / WN) * WN;  // of the tile of C
    const unsigned a_at = shared + ((y + lane % 16) * A_LINE + ((lane / 16) ^ (lane % 8))) * 16;
    const unsigned b_at = shared + A_BYTES + (lane % 16 * B_LINE + ((x / 8 + lane / 16) ^ (lane % 8))) * 16;
    float sum[WM / 16][WN / 8][4] = {};
    unsigned of_a[2][WM / 16][4], of_b[2][WN / 16][4];  // of_b: both halves along k of two fragments of eight columns
    auto load = [&](int stage, int i, int to) {
#pragma unroll
        for (int r = 0; r < WM / 16; r++) {
            load_matrices(of_a[to][r], ((a_at + stage * STAGE_BYTES) ^ (i * 32)) + r * 16 * A_LINE * 16);
        }
#pragma unroll
        for (int s = 0; s < WN / 16; s++) {
            load_transposed(of_b[to][s], ((b_at + stage * STAGE_BYTES) ^ (s * 32)) + i * 16 * B_LINE * 16);
        }
    };

    copy_tiles(0, true, first_depth);
    asm volatile("cp.async.commit_group;");
#pragma unroll
    for (int i = 1; i < STAGES - 1; i++) {
        if (i < tiles) {
            copy_tiles(i, false, BK);
        }
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
    __syncthreads();
    load(0, 0, 0);
    for (int tile = 0, now = 0, next = STAGES - 1; tile < tiles; tile++) {
#pragma unroll
        for (int i = 0; i < BK / 16; i++) {
            if (i < BK / 16 - 1) {
                load(now, i + 1, (i + 1) % 2);
            } else {
                asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
                __syncthreads();
                if (tile + 1 < tiles) {
                    now = now == STAGES - 1 ? 0 : now + 1;
                }
                load(now, 0, 0);
            }
            if (i == 0) {
                if (tile + STAGES - 1 < tiles) {
                    copy_tiles(next, false, BK);
                }
                asm volatile("cp.async.commit_group;");
                next = next == STAGES - 1 ? 0 : next + 1;
            }
#pragma unroll
            for (int r = 0; r < WM / 16; r++) {
#pragma unroll
                for (int j = 0; j < WN / 8; j++) {
                    const int s = r % 2 ? WN / 8 - 1 - j : j;  // to and fro: operands that stay are not read again
                    multiply_add(sum[r][s], of_a[i % 2][r], of_b[i % 2][s / 2][s % 2 * 2],
                                 of_b[i % 2][s / 2][s % 2 * 2 + 1]);
                }
            }
        }
    }

    // Of each 16 × 8 elements, a lane holds two of row lane / 4 and two of the row eight below.
#pragma unroll
    for (int r = 0; r < WM / 16; r++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = first_row + y + 16 * r + 8 * h + lane / 4;
#pragma unroll
            for (int s = 0; s < WN / 8; s++) {
                const int column = first_column + x + 8 * s + lane % 4 * 2;
                if (row < m && column < n) {
                    store2(c + size_t(row) * n + column, sum[r][s][2 * h], sum[r][s][2 * h + 1]);
                }
            }
        }
    }
}
