// 10. Step 9, and several blocks share the depth of a tile where there are too few tiles.
// Changed: the grid's z has `parts` blocks for each tile, each of which takes its part of the tiles along k. It writes its
// sums to memory and counts itself; the last one of a tile to come adds up all of them, in the order of the parts, so
// that the result is the same in every run, and writes C. Loads of B and stores of C are aligned or not for themselves,
// so that B may be a copy with wider rows where those of C are not. shape_rule.py chooses sizes, parts and copy.
// Expected: 128 × 128 × 65536 is 32 µs of multiply-adds for 132 multiprocessors, 0.8 ms for the four that step 9 has
// tiles for. Added are writing and reading the sums, parts × 4 bytes for each element of C, and the last block's wait:
// it reads alone, some 60 bytes per clock.
// Reached: 74 µs for it, 0.90 of cuBLASLt's fastest algorithm, where step 9 took 0.86 ms. Over 40 shapes drawn at random, of
// any size from 16 to 16384, 0.99 of that algorithm, the geometric mean; four are below 0.8, of which
// 14372 × 7949 × 20, 0.42, mostly stores rows that no float4 fits. Over networks' shapes 1.02, over the lab's 1.04 (H100
// 80GB HBM3, 2026-11-24, operands not in the L2 cache; two more processes gave 0.99 and 0.98 for the first).
//
// a is m × k, b is k × n, c is m × n, row-major; k < 2^24. Rows of b are `b_row` long. `B_ALIGNED`, `C_ALIGNED`: these
// rows, and the first one, start at multiples of 16 bytes. `partials`: BM × BN × tiles × parts sums; `counters`: one for
// each tile, 0, as the kernel leaves it. Both are for MEET, parts > 1.
// The other parameters are step 9's.
#include "9_tuned.cu"

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int STAGES, int BLOCKS, int GROUP, bool B_ALIGNED,
          bool C_ALIGNED, bool MEET>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, BLOCKS)
    matmul_split_k(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, float4 *partials,
                   unsigned *counters, int m, int n, int k, int b_row) {
    constexpr int THREADS = BM / WM * (BN / WN) * 32;
    const int part = MEET ? blockIdx.z : 0, parts = MEET ? gridDim.z : 1;
    int first_row, first_column, y, x;
    find_tile<BM, BN, GROUP>(m, n, first_row, first_column);
    float sum[TM][TN] = {};
    multiply_add<BM, BN, BK, WM, WN, STAGES, B_ALIGNED>(sum, a, b, first_row, first_column, m, k, b_row, part, parts);
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

#pragma unroll
    for (int r = 0; r < TM; r++) {
        const int row = first_row + y + r / 4 * 4 * (WM / TM) + r % 4;
        float *const to = c + size_t(row) * n;
#pragma unroll
        for (int s = 0; s < TN; s += 4) {
            const int column = first_column + x + s * (WN / TN);
            if (C_ALIGNED) {
                if (row < m && column < n) {
                    *reinterpret_cast<float4 *>(to + column) = *reinterpret_cast<const float4 *>(&sum[r][s]);
                }
            } else {
                // Lanes 0, 1, 4 and 5 of eight, whose columns follow each other, exchange them: so each store writes
                // four columns side by side.
                const int lane = threadIdx.x % 32;
                float v[4] = {sum[r][s], sum[r][s + 1], sum[r][s + 2], sum[r][s + 3]};
#pragma unroll
                for (int bit = 0; bit < 2; bit++) {
                    const int away = bit ? 4 : 1;
                    const bool upper = lane & away;
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        if (!(i >> bit & 1)) {
                            const float given = __shfl_xor_sync(0xffffffff, upper ? v[i] : v[i | 1 << bit], away);
                            (upper ? v[i] : v[i | 1 << bit]) = given;
                        }
                    }
                }
                const int mine = (lane & 1) | (lane >> 1 & 2), start = column - 4 * mine + mine;
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    if (row < m && start + 4 * i < n) {
                        to[start + 4 * i] = v[i];
                    }
                }
            }
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
