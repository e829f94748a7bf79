// 10. Step 9, and several blocks share the depth of a tile where there are too few tiles.
// Changed: the grid's z has `parts` blocks for each tile, each of which takes its part of the tiles along k. It writes its
// sums to memory and counts itself; the last one of a tile to come adds up all of them, in the order of the parts, so
// that the result is the same in every run, and writes C. Loads of B and stores of C are aligned or not for themselves,
// so that B may be a copy with wider rows where those of C are not. shape_rule.py chooses sizes, parts and copy.
// Expected: 128 × 128 × 65536 is 32 µs of multiply-adds for 132 multiprocessors, 0.8 ms for the four that step 9 has
// tiles for. Added are writing and reading the sums, parts × 4 bytes for each element of C, and the last block's wait:
// it reads alone, some 60 bytes per clock.
// Reached: 71 µs for it, 0.94 of cuBLASLt's fastest algorithm, where step 9 took 0.86 ms. Over 40 shapes drawn at random,
// of any size from 16 to 16384, 1.04 of that algorithm, the geometric mean; three are below 0.8, the least 25 × 6431 × 362
// with 0.74. Over networks' shapes 1.09, the least 0.75 (1 × 4096 × 4096), over the lab's 1.10, the least 0.94 (H200,
// 2026-11-27, operands not in the L2 cache; two more processes gave 1.05 for the first); with operands in it 1.01, 1.08 and
// 1.07. The choice takes 2.2 % longer than the best plan, the mean of 69 shapes that it was not fitted to, at worst 13 %; of
// the others 3.1, at worst 25 % (512³). It was 3.7 and 17 %, and 52 % at worst of nine shapes picked for being slow, while
// blocks of few warps counted as slow however many of them share a multiprocessor; now a step has a latency, beside what
// its products take of the scheduler with most warps (96 × 96 × 30000: 26 µs by two blocks of two warps each, 30 by three).
// Of five slow ones of today all plans were timed (H100, 2026-11-27): 25 × 6431 × 362 takes 21.5 µs by the plan chosen, 12.5 by
// 32 × 32, which the rule takes for as fast (13.0), the library 15.9. 163 × 2823 × 1342 56.8, 52.0
// and 49.7; 1 × 4096 × 4096 32.9, 29.8 and 26.5; 17 × 163 × 6776 has no better plan, 17.9 and 15.7.
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
        __threadfence();
        __syncthreads();
        __shared__ bool last;
        if (threadIdx.x == 0) {
            last = atomicInc(counters + blockIdx.x, parts - 1) == parts - 1;  // which leaves 0
        }
        __syncthreads();
        if (!last) {
            return;
        }
        __threadfence();
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
