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
// BM, BN, BK: rows and columns of the tile of C that a block computes, and depth of the tiles it loads.
// WM, WN: rows and columns that a warp computes. TM, TN: rows and columns that a thread computes.
// STAGES: pairs of tiles in shared memory, of which all but one are loaded while one is used.
// BLOCKS: of those that a multiprocessor holds at a time, at least; the compiler gives registers accordingly.
// GROUP: blocks run down so many tiles of C before they go on to the next column of tiles.

// Starts a copy of BYTES (4 or 16) to shared memory. `guarded`, a constant: zeros instead, unless `inside`.
template <int BYTES>
__device__ __forceinline__ void copy(unsigned to, const float *from, bool guarded, bool inside) {
    if (BYTES == 16 && guarded) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0));
    } else if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
    } else if (guarded) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(inside ? 4 : 0));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from));
    }
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int STAGES, int BLOCKS, int GROUP, bool B_ALIGNED,
          bool C_ALIGNED, bool MEET>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, BLOCKS)
    matmul_split_k(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, float4 *partials,
                   unsigned *counters, int m, int n, int k, int b_row) {
    constexpr int THREADS = BM / WM * (BN / WN) * 32;
    constexpr int PITCH = BM + 4;                     // of the tile of A
    constexpr int DOWN = WM / TM, ACROSS = WN / TN;   // lanes of a warp
    constexpr int A_ROWS = THREADS / 8;               // that the block copies at a time, eight words of each
    constexpr int A_COPIES = BM / A_ROWS;             // of a thread for eight words of depth
    constexpr int WORDS = B_ALIGNED ? 4 : 1;          // of B that a thread copies at a time
    constexpr int B_LINE = BN / WORDS;                // copies for a row of the tile
    constexpr int B_ROWS = THREADS > B_LINE ? THREADS / B_LINE : 1;    // that the block copies at a time
    constexpr int B_COPIES = THREADS > B_LINE ? 1 : B_LINE / THREADS;  // of a thread for them
    static_assert(DOWN * ACROSS == 32 && (DOWN == 4 || DOWN == 8), "a warp is 4 × 8 or 8 × 4 threads");
    static_assert(BM % A_ROWS == 0 && BK % 8 == 0, "each thread copies equally many words of A");
    static_assert(BK % B_ROWS == 0 && B_ROWS * B_LINE == B_COPIES * THREADS,
                  "each thread copies equally many words of B");
    extern __shared__ float4 memory[];
    float *const a_tiles = reinterpret_cast<float *>(memory);
    float *const b_tiles = a_tiles + STAGES * BK * PITCH;

    const int height = (m - 1) / BM + 1, width = (n - 1) / BN + 1;  // of C in tiles
    const int group = blockIdx.x / (GROUP * width) * GROUP, rows = min(GROUP, height - group);
    const int place = blockIdx.x - group * width;
    const int first_row = (group + place % rows) * BM, first_column = place / rows * BN;

    // The first tile along k takes what is left over, 1 to BK; so all others are whole. Rows and columns outside the
    // matrices are replaced by the last ones inside: their sums are never written.
    // A block takes `tiles` of all, its part, from `begin` on.
    const int all = (k - 1) / BK + 1, part = MEET ? blockIdx.z : 0, parts = MEET ? gridDim.z : 1;
    const int begin = (long long)all * part / parts, tiles = (long long)all * (part + 1) / parts - begin;
    const int left_over = k - (all - 1) * BK, first_depth = begin ? BK : left_over;
    const int start = begin ? left_over + (begin - 1) * BK : 0;
    const int a_k = threadIdx.x % 8, a_row = threadIdx.x / 8;
    const int b_k = threadIdx.x / B_LINE, b_column = threadIdx.x % B_LINE * WORDS;
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
    const unsigned a_to = unsigned(__cvta_generic_to_shared(a_tiles + a_k * PITCH + a_row));
    const unsigned b_to = unsigned(__cvta_generic_to_shared(b_tiles + b_k * BN + b_column));
    auto copy_tiles = [&](int stage, bool guarded, int depth) {
#pragma unroll
        for (int h = 0; h < BK; h += 8) {
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

    // Lanes as in step 7. The even bits of a lane's number say which across, the odd ones which down; bit 4 goes to the
    // side with eight.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int across = (lane & 1) | (lane >> 1 & 2) | (ACROSS == 8 ? lane >> 2 & 4 : 0);
    const int down = (lane >> 1 & 1) | (lane >> 2 & 2) | (DOWN == 8 ? lane >> 2 & 4 : 0);
    const int y = warp / (BN / WN) * WM + 4 * down, x = warp % (BN / WN) * WN + 4 * across;  // of the tile of C
    float sum[TM][TN] = {}, a_part[2][TM], b_part[2][TN];
    auto load = [&](int stage, int depth, int to) {
        const float *const a_line = a_tiles + (stage * BK + depth) * PITCH + y;
        const float *const b_line = b_tiles + (stage * BK + depth) * BN + x;
#pragma unroll
        for (int r = 0; r < TM; r += 4) {
            *reinterpret_cast<float4 *>(&a_part[to][r]) = *reinterpret_cast<const float4 *>(a_line + r * DOWN);
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
        const int row = first_row + y + r / 4 * 4 * DOWN + r % 4;
        float *const to = c + size_t(row) * n;
#pragma unroll
        for (int s = 0; s < TN; s += 4) {
            const int column = first_column + x + s * ACROSS;
            if (C_ALIGNED) {
                if (row < m && column < n) {
                    *reinterpret_cast<float4 *>(to + column) = *reinterpret_cast<const float4 *>(&sum[r][s]);
                }
            } else {
                // Lanes 0, 1, 4 and 5 of eight, whose columns follow each other, exchange them: so each store writes
                // four columns side by side.
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
