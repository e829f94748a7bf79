// 10. Step 9, and several blocks share the depth of a tile where there are too few tiles.
// Changed: the grid's z has `parts` blocks for each tile, each of which takes its part of the tiles along k. It writes
// its sums to memory and counts itself; the last one of a tile to come adds up all of them, in the same order
// whichever came last, so that the result is the same in every run, and writes C. Loads of B and stores of C are
// aligned or not for themselves, so that B may be a copy with wider rows where those of C are not. shape_rule.py
// chooses sizes, parts and copy.
// Expected: 128 × 128 × 65536 is 32 µs of multiply-adds for 132 multiprocessors, 0.8 ms for the four that step 9 has
// tiles for. Added are writing and reading the sums, parts × 4 bytes for each element of C, and the last block's wait:
// it reads alone, some 60 bytes per clock.
// Reached: 74 µs for it, 0.89 of cuBLASLt's fastest algorithm, where step 9 took 0.86 ms. Over 40 shapes drawn at
// random, of any size from 16 to 16384, 1.03 of that algorithm, the geometric mean; none is below 0.8, the least is
// 319 × 4393 × 1075 with 0.82. Over networks' shapes 1.09, the least 0.85 (1024 × 50257 × 768), over the lab's 1.11,
// the least 0.89 (H200, 2026-11-27, operands not in the L2 cache; two more processes gave 1.03 for the first); with
// operands in it 0.98, 1.08 and 1.08, the least 0.74. The choice takes 2.8 % longer than the best plan, the mean of 74
// shapes that it was not fitted to, at worst 16 %; of the others 2.6, at worst 15 %. It took 72 % longer at worst
// while the latency was one of a step: what a block waits for is a latency of the memory for all that it has on its
// way. Tiles of 32 × 64 have 32 of depth on their way and tiles of 32 × 32 have 64: 25 × 6431 × 362 takes 21.5 µs by
// the first, 12.5 by the second, the library 15.9 (H100, 2026-11-27). Of few rows a word of B is used once or few
// times, so it goes to registers: 1 × 4096 × 4096 took 32.5 µs in tiles of shared memory, and takes 27.8, the library
// 26.4; 3 × 5001 × 3000 68.8, 28.8 and 42.6; 17 × 163 × 6776 18.1 in tiles of 32 × 32, 15.2 in nine of two rows each,
// and 14.8 (H100, 2026-11-27).
// 37 × 947 × 1952 was at 0.74 of the library, in three tiles of 16 rows; in one of 48 × 32 it takes 15.3 µs, the library 17.2.
// What made it 1.05 of what it was: neighbouring threads copied eight words of a row of A, so that a warp's copy touched
// four rows and more lines of L1; now they copy up to 32 (A_LINE), and what would meet in one bank is turned by a row or
// two (233 × 329 × 12701: 83 to 79 µs). And parts with which all multiprocessors have as many blocks: 813 × 32 × 11969
// takes 29 µs in 10 parts and 40 in 12. Rows of C that no float4 fits were first stored in pieces of 16 bytes, after lanes had
// exchanged sums by shuffles: 14372 × 7949 × 20 took 619 µs, where it took 325 on the H100 when they went through shared
// memory.
//
// a is m × k, b is k × n, c is m × n, row-major; k < 2^24. Rows of b are `b_row` long, and start at multiples of
// `B_WORDS` words, 4, 2 or 1. `C_ALIGNED`: those of c start at multiples of 16 bytes.
// `partials`: BM × BN × tiles × parts sums; `counters`: one for each tile, 0, as the kernel leaves it. Both are for MEET,
// parts > 1.
// The other parameters are step 9's.
#include "9_tuned.cu"

// Counts a block, and returns whether it is the last of `parts` to come, which sees what all of them wrote.
__device__ __forceinline__ bool comes_last(unsigned *counter, int parts) {
    __threadfence();
    __syncthreads();
    __shared__ bool last;
    if (threadIdx.x == 0) {
        last = atomicInc(counter, parts - 1) == parts - 1;  // which leaves 0
    }
    __syncthreads();
    if (last) {
        __threadfence();
    }
    return last;
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int STAGES, int BLOCKS, int GROUP, int B_WORDS,
          bool C_ALIGNED, bool MEET>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, BLOCKS)
    matmul_split_k(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, float4 *partials,
                   unsigned *counters, int m, int n, int k, int b_row) {
    // Words of a row of A that neighbouring threads copy: as many as are a tile's, but where registers are few (128).
    constexpr int THREADS = BM / WM * (BN / WN) * 32;
    constexpr int LONGEST = THREADS / 4 < 32 ? THREADS / 4 : 32;
    constexpr int A_LINE = THREADS * BLOCKS == 512 && TM * TN == 64 ? 8 : BK < LONGEST ? BK : LONGEST;
    const int part = MEET ? blockIdx.z : 0, parts = MEET ? gridDim.z : 1;
    int first_row, first_column, y, x;
    find_tile<BM, BN, GROUP>(m, n, first_row, first_column);
    float sum[TM][TN] = {};
    multiply_add<BM, BN, BK, WM, WN, STAGES, B_WORDS, A_LINE>(sum, a, b, first_row, first_column, m, k, b_row, part,
                                                              parts);
    find_sums<BN, WM, WN, TM, TN>(y, x);

    if constexpr (MEET) {
        constexpr int FOURS = TM * TN / 4, AT_ONCE = FOURS < 16 ? 16 / FOURS : 1;  // of a thread; parts in flight
        float4 *const tile = partials + size_t(blockIdx.x) * parts * FOURS * THREADS + threadIdx.x;
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            const float *const v = &sum[i * 4 / TN][i * 4 % TN];
            __stcg(tile + (part * FOURS + i) * THREADS, make_float4(v[0], v[1], v[2], v[3]));
        }
        if (!comes_last(counters + blockIdx.x, parts)) {
            return;
        }
#pragma unroll
        for (int i = 0; i < TM * TN; i++) {
            sum[i / TN][i % TN] = 0;
        }
#pragma unroll AT_ONCE
        for (int p = 0; p < parts; p++) {
#pragma unroll
            for (int i = 0; i < FOURS; i++) {
                const float4 v = __ldcg(tile + (p * FOURS + i) * THREADS);
                float *const s = &sum[i * 4 / TN][i * 4 % TN];
                s[0] += v.x, s[1] += v.y, s[2] += v.z, s[3] += v.w;
            }
        }
    }

    if constexpr (C_ALIGNED) {
#pragma unroll
        for (int r = 0; r < TM; r++) {
            const int row = first_row + y + r / 4 * 4 * (WM / TM) + r % 4;
#pragma unroll
            for (int s = 0; s < TN; s += 4) {
                const int column = first_column + x + s * (WN / TN);
                if (row < m && column < n) {
                    *reinterpret_cast<float4 *>(c + size_t(row) * n + column) =
                        *reinterpret_cast<const float4 *>(&sum[r][s]);
                }
            }
        }
    } else {
        // The sums of a warp go through shared memory, ROWS at a time, so that each store writes neighbours of a row.
        constexpr int ROWS = 4 * (WM / TM), PITCH = WN + 4, LINE = WN < 32 ? WN : 32;  // LINE: that a store has of a row
        static_assert(THREADS / 32 * ROWS * PITCH <= STAGES * BK * (BM + 4 + BN), "room where the tiles were");
        extern __shared__ float4 memory[];
        float *const own = reinterpret_cast<float *>(memory) + threadIdx.x / 32 * ROWS * PITCH;
        const int top = y / WM * WM, left = x / WN * WN;  // of the warp
        const int down = threadIdx.x % 32 / LINE, across = threadIdx.x % LINE, column = first_column + left + across;
        __syncthreads();  // all have read the last tiles
#pragma unroll
        for (int r = 0; r < TM; r += 4) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int s = 0; s < TN; s += 4) {
                    *reinterpret_cast<float4 *>(own + (y - top + i) * PITCH + x - left + s * (WN / TN)) =
                        *reinterpret_cast<const float4 *>(&sum[r + i][s]);
                }
            }
            __syncwarp();
            const int row = first_row + top + r * (WM / TM) + down;
            float *const to = c + size_t(row) * n + column;
#pragma unroll 8
            for (int i = 0; i < ROWS; i += 32 / LINE) {
#pragma unroll
                for (int s = 0; s < WN; s += 32) {
                    if (row + i < m && column + s < n) {
                        to[size_t(i) * n + s] = own[(i + down) * PITCH + across + s];
                    }
                }
            }
            __syncwarp();
        }
    }
}

// One row of C, or few: each word of B is used once or few times, so that it goes to registers and not to shared memory,
// AT_ONCE rows of B on their way in each of WARPS warps, which share the depth. With two rows and one part a thread spills
// 56 bytes, 72 where n is even and no multiple of 4, as four blocks leave it 64 registers.
template <int BM, int BLOCKS, int B_WORDS, bool MEET>
__global__ void __launch_bounds__(256, BLOCKS)
    matmul_few_rows(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, float *partials,
                    unsigned *counters, int m, int n, int k, int b_row) {
    constexpr int WARPS = 8, AT_ONCE = 8, BN = 128, COPIES = 4 / B_WORDS;
    __shared__ __align__(16) float sums[WARPS][BM * BN];
    const int part = MEET ? blockIdx.z : 0, parts = MEET ? gridDim.z : 1, lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32, begin = (long long)k * part / parts, end = (long long)k * (part + 1) / parts;
    int first_row, first_column;
    find_tile<BM, BN, 8>(m, n, first_row, first_column);
    auto total = [&](int i) {
        float v = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            v += sums[w][i];
        }
        return v;
    };

    float sum[BM][4] = {};
    for (int depth = begin + warp * AT_ONCE; depth < end; depth += WARPS * AT_ONCE) {
        float of_a[BM][AT_ONCE], of_b[AT_ONCE][4];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const bool inside = depth + i < end;
#pragma unroll
            for (int j = 0; j < COPIES; j++) {
                const int column = min(first_column + (32 * j + lane) * B_WORDS, b_row - B_WORDS);
                const float *const from = b + size_t(depth + i) * b_row + column;
                float *const to = of_b[i] + j * B_WORDS;
                if constexpr (B_WORDS == 4) {
                    *reinterpret_cast<float4 *>(to) = inside ? __ldcs(reinterpret_cast<const float4 *>(from)) : float4{};
                } else if constexpr (B_WORDS == 2) {
                    *reinterpret_cast<float2 *>(to) = inside ? __ldcs(reinterpret_cast<const float2 *>(from)) : float2{};
                } else {
                    *to = inside ? __ldcs(from) : 0;
                }
            }
#pragma unroll
            for (int r = 0; r < BM; r++) {
                of_a[r][i] = inside ? a[size_t(min(first_row + r, m - 1)) * k + depth + i] : 0;
            }
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
#pragma unroll
            for (int r = 0; r < BM; r++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    sum[r][j] += of_a[r][i] * of_b[i][j];
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < BM; r++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            sums[warp][r * BN + (32 * (j / B_WORDS) + lane) * B_WORDS + j % B_WORDS] = sum[r][j];
        }
    }
    __syncthreads();
    if constexpr (MEET) {
        float *const tile = partials + size_t(blockIdx.x) * parts * BM * BN;
        for (int i = threadIdx.x; i < BM * BN; i += 32 * WARPS) {
            __stcg(tile + part * BM * BN + i, total(i));
        }
        if (!comes_last(counters + blockIdx.x, parts)) {
            return;
        }
#pragma unroll
        for (int i = lane; i < BM * BN / 4; i += 32) {
            float4 s = {};
#pragma unroll 8
            for (int p = warp; p < parts; p += WARPS) {
                const float4 v = __ldcg(reinterpret_cast<const float4 *>(tile) + p * BM * BN / 4 + i);
                s.x += v.x, s.y += v.y, s.z += v.z, s.w += v.w;
            }
            *reinterpret_cast<float4 *>(&sums[warp][4 * i]) = s;
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < BM * BN; i += 32 * WARPS) {
        const int row = first_row + i / BN, column = first_column + i % BN;
        if (row < m && column < n) {
            c[size_t(row) * n + column] = total(i);
        }
    }
}

// Copies rows of `columns` words to rows of `wide`, a multiple of four, with zeros beyond; a thread fills 16 bytes.
extern "C" __global__ void matmul_pad(const float *from, float4 *to, int rows, int columns, int wide) {
    const size_t all = size_t(rows) * (wide / 4);
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < all; i += size_t(gridDim.x) * blockDim.x) {
        const int row = i / (wide / 4), column = i % (wide / 4) * 4;
        const float *const line = from + size_t(row) * columns;
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            v[j] = column + j < columns ? line[column + j] : 0;
        }
        to[i] = make_float4(v[0], v[1], v[2], v[3]);
    }
}
