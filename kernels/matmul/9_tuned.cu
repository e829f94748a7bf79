// 9. Step 8 with sizes as parameters, chosen by shape from a table that the autotuner made on the GPU.
// Changed: more stages; registers for the next words are loaded while the last are used, also from one tile to the
// next; no bounds in the loop along k, because the incomplete tile comes first; blocks run in groups of rows of tiles,
// so that those at work share tiles in the L2 cache; tiles and threads of several sizes.
// Expected: fewer instructions for each multiply-add and fewer waits, near cuBLAS on large matrices; and on small and
// skinny ones, where large tiles leave multiprocessors idle, much more than any fixed tile.
// Reached: 49.2 TFLOP/s, 0.953 of cuBLAS, with tiles of 64 × 128; 51.2 TFLOP/s, 0.99 of cuBLAS, at 8192. ncu: 1.13
// instructions for each multiply-add, one issued in 86 % of the clocks; cuBLAS has 1.13 and 90 %, with 254 registers
// where this has 144.
// By shape from 0.85 to 1.42 of cuBLAS, but for matrices that are small and deep: 0.68 for 512 × 512 × 16384 and 0.078
// for 128 × 128 × 65536. There cuBLAS divides k among blocks and adds up, which this does not.
//
// a is m × k, b is k × n, c is m × n, row-major; k < 2^24. `ALIGNED`: n is a multiple of 4, and b and c start at
// multiples of 16 bytes.
// BM, BN, BK: rows and columns of the tile of C that a block computes, and depth of the tiles it loads.
// WM, WN: rows and columns that a warp computes. TM, TN: rows and columns that a thread computes.
// STAGES: pairs of tiles in shared memory, of which all but one are loaded while one is used.
// BLOCKS: of those that a multiprocessor holds at a time, at least; the compiler gives registers accordingly.
// GROUP: blocks run down so many tiles of C before they go on to the next column of tiles.
// Step 10 includes this file: what a block does up to its sums is in three functions for that.

// Starts a copy of BYTES (4, 8 or 16) to shared memory. `guarded`, a constant: zeros instead, unless `inside`.
template <int BYTES>
__device__ __forceinline__ void copy(unsigned to, const float *from, bool guarded, bool inside) {
    if (BYTES == 16 && guarded) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0));
    } else if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
    } else if (guarded) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(inside ? BYTES : 0),
                     "n"(BYTES));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES));
    }
}

// Where a block's tile of C starts.
template <int BM, int BN, int GROUP>
__device__ __forceinline__ void find_tile(int m, int n, int &first_row, int &first_column) {
    const int height = (m - 1) / BM + 1, width = (n - 1) / BN + 1;  // of C in tiles
    const int group = blockIdx.x / (GROUP * width) * GROUP, rows = min(GROUP, height - group);
    const int place = blockIdx.x - group * width;
    first_row = (group + place % rows) * BM, first_column = place / rows * BN;
}

// Where a thread's sums start in the tile. Lanes as in step 7. The even bits of a lane's number say which across, the odd
// ones which down; bit 4 goes to the side with eight. Or all 32 are side by side.
template <int BN, int WM, int WN, int TM, int TN>
__device__ __forceinline__ void find_sums(int &y, int &x) {
    constexpr int DOWN = WM / TM, ACROSS = WN / TN;  // lanes of a warp
    static_assert(DOWN * ACROSS == 32 && (DOWN == 4 || DOWN == 8 || DOWN == 1), "a warp is 4 × 8, 8 × 4 or 1 × 32");
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int across = DOWN == 1 ? lane : (lane & 1) | (lane >> 1 & 2) | (ACROSS == 8 ? lane >> 2 & 4 : 0);
    const int down = DOWN == 1 ? 0 : (lane >> 1 & 1) | (lane >> 2 & 2) | (DOWN == 8 ? lane >> 2 & 4 : 0);
    y = warp / (BN / WN) * WM + 4 * down, x = warp % (BN / WN) * WN + 4 * across;
}

// Adds to `sum` the products of `part` of `parts` along k; step 9 has one, step 10 more. Rows of b are `b_row` long. WORDS
// of b are copied at a time, of a row of a A_LINE words by neighbouring threads.
template <int BM, int BN, int BK, int WM, int WN, int STAGES, int WORDS, int A_LINE, int TM, int TN>
__device__ __forceinline__ void multiply_add(float (&sum)[TM][TN], const float *a, const float *b, int first_row,
                                             int first_column, int m, int k, int b_row, int part, int parts) {
    constexpr int THREADS = BM / WM * (BN / WN) * 32;
    constexpr int PITCH = BM + 4;                     // of the tile of A
    constexpr int DOWN = WM / TM, ACROSS = WN / TN;   // lanes of a warp
    constexpr int A_ROWS = THREADS / A_LINE;          // that the block copies at a time, A_LINE words of each
    constexpr int A_COPIES = BM / A_ROWS;             // of a thread for as many words of depth
    constexpr int B_LINE = BN / WORDS;                // copies for a row of the tile
    constexpr int B_ROWS = THREADS > B_LINE ? THREADS / B_LINE : 1;    // that the block copies at a time
    constexpr int B_COPIES = THREADS > B_LINE ? 1 : B_LINE / THREADS;  // of a thread for them
    static_assert(BM % A_ROWS == 0 && A_ROWS % 4 == 0 && BK % A_LINE == 0, "each thread copies equally many words of A");
    static_assert(BK % B_ROWS == 0 && B_ROWS * B_LINE == B_COPIES * THREADS,
                  "each thread copies equally many words of B");
    extern __shared__ float4 memory[];
    float *const a_tiles = reinterpret_cast<float *>(memory);
    float *const b_tiles = a_tiles + STAGES * BK * PITCH;

    // The first tile along k takes what is left over, 1 to BK; so all others are whole. Rows and columns outside the
    // matrices are replaced by the last ones inside: their sums are never written.
    // A part takes `tiles` of all, from `begin` on.
    const int all = (k - 1) / BK + 1;
    const int begin = (long long)all * part / parts, tiles = (long long)all * (part + 1) / parts - begin;
    const int left_over = k - (all - 1) * BK, first_depth = begin ? BK : left_over;
    const int start = begin ? left_over + (begin - 1) * BK : 0;
    const int a_k = threadIdx.x % A_LINE, a_row = threadIdx.x / A_LINE;
    const int b_k = threadIdx.x / B_LINE, b_column = threadIdx.x % B_LINE * WORDS;
    // Eight words of a row go to all 32 banks with three more rows; of longer lines the next eight are turned.
    auto turned = [](int depth) { return depth / 8 % (A_LINE / 8) * (32 / A_LINE); };
    // Where the next pair of tiles starts.
    const float *a_from = a + size_t(first_row) * k + start, *b_from = b + size_t(start) * b_row;
    unsigned a_offset[A_COPIES], b_offset[B_COPIES];
#pragma unroll
    for (int i = 0; i < A_COPIES; i++) {
        a_offset[i] = unsigned(min(a_row + i * A_ROWS, m - 1 - first_row)) * k + a_k;
    }
#pragma unroll
    for (int i = 0; i < B_COPIES; i++) {
        b_offset[i] = unsigned(b_k) * b_row + min(first_column + b_column + i * THREADS * WORDS, b_row - WORDS);
    }
    const unsigned a_to = unsigned(__cvta_generic_to_shared(a_tiles + a_k * PITCH + (a_row ^ turned(a_k))));
    const unsigned b_to = unsigned(__cvta_generic_to_shared(b_tiles + b_k * BN + b_column));
    auto copy_tiles = [&](int stage, bool guarded, int depth) {
#pragma unroll
        for (int h = 0; h < BK; h += A_LINE) {
#pragma unroll
            for (int i = 0; i < A_COPIES; i++) {
                copy<4>(a_to + 4 * ((stage * BK + h) * PITCH + i * A_ROWS), a_from + a_offset[i] + h, guarded,
                        a_k + h < depth);
            }
        }
        const float *from = b_from;
#pragma unroll
        for (int h = 0; h < BK; h += B_ROWS) {
#pragma unroll
            for (int i = 0; i < B_COPIES; i++) {
                copy<4 * WORDS>(b_to + 4 * ((stage * BK + h) * BN + i * THREADS * WORDS), from + b_offset[i], guarded,
                                b_k + h < depth);
            }
            from += size_t(B_ROWS) * b_row;
        }
        a_from += depth;
        b_from += size_t(depth) * b_row;
    };

    int y, x;
    find_sums<BN, WM, WN, TM, TN>(y, x);
    float a_part[2][TM], b_part[2][TN];
    auto load = [&](int stage, int depth, int to) {
        const float *const a_line = a_tiles + (stage * BK + depth) * PITCH + y;
        const float *const b_line = b_tiles + (stage * BK + depth) * BN + x;
#pragma unroll
        for (int r = 0; r < TM; r += 4) {
            const float4 v = *reinterpret_cast<const float4 *>(a_line + r * DOWN);
            const int t = r ^ turned(depth);
            a_part[to][t] = v.x, a_part[to][t ^ 1] = v.y, a_part[to][t ^ 2] = v.z, a_part[to][t ^ 3] = v.w;
        }
#pragma unroll
        for (int s = 0; s < TN; s += 4) {
            *reinterpret_cast<float4 *>(&b_part[to][s]) = *reinterpret_cast<const float4 *>(b_line + s * ACROSS);
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
        for (int i = 0; i < BK; i++) {
            // What comes next is loaded into registers while this is used, at the end already from the next tile.
            if (i < BK - 1) {
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
            for (int r = 0; r < TM; r++) {
#pragma unroll
                for (int j = 0; j < TN; j++) {
                    const int s = r % 2 ? TN - 1 - j : j;  // to and fro: an operand that stays is not read again
                    sum[r][s] += a_part[i % 2][r] * b_part[i % 2][s];
                }
            }
        }
    }
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int STAGES, int BLOCKS, int GROUP, bool ALIGNED>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, BLOCKS)
    matmul_tuned(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k) {
    int first_row, first_column, y, x;
    find_tile<BM, BN, GROUP>(m, n, first_row, first_column);
    float sum[TM][TN] = {};
    multiply_add<BM, BN, BK, WM, WN, STAGES, ALIGNED ? 4 : 1, 8>(sum, a, b, first_row, first_column, m, k, n, 0, 1);
    find_sums<BN, WM, WN, TM, TN>(y, x);

#pragma unroll
    for (int r = 0; r < TM; r++) {
        const int row = first_row + y + r / 4 * 4 * (WM / TM) + r % 4;
        float *const to = c + size_t(row) * n;
#pragma unroll
        for (int s = 0; s < TN; s += 4) {
            const int column = first_column + x + s * (WN / TN);
            if (ALIGNED) {
                if (row < m && column < n) {
                    *reinterpret_cast<float4 *>(to + column) = *reinterpret_cast<const float4 *>(&sum[r][s]);
                }
            } else {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    if (row < m && column + i < n) {
                        to[column + i] = sum[r][s + i];
                    }
                }
            }
        }
    }
}
