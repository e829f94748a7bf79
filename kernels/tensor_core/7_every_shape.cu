// 7. Step 6 for every shape: the tile, and how many blocks share its depth, are chosen for each product.
// Changed: sizes of the tile are parameters, down to 64 × 64, so that small products have a tile for every
// multiprocessor; a warp and not a warpgroup loads. Where there are too few tiles all the same, blocks share the depth of
// one: SPLIT blocks of a cluster send each other sums through their shared memory, or `parts` blocks through global
// memory (MEET): each writes its sums, all wait until all have come, and each adds up its share of the tile, in the order
// of the parts, so that the result is the same in every run. Either operand may be given transposed: TMA's boxes then
// have the other index along their lines, which is a constant of wgmma. TMA wants rows of whole 16 bytes: others are
// first copied to wider ones (pad.cu), and C of such rows is stored directly (DIRECT); small and shallow products of such
// rows are any_rows.cu's.
// Expected: time = launch + waves × steps × max(products / rate, L2 bytes / bandwidth, latency) + fix-up, see
// shape_rule.py, which chooses. 1024³ has 128 tiles of 64 × 128 where step 6 has 32; 128 × 256 × 65536 has four of
// 128 × 64, whose depth 32 blocks each share.
// Reached: over 40 shapes drawn at random, of any size from 16 to 16384, 1.40 of cuBLASLt's fastest algorithm, the
// geometric mean, the least 0.82 (59 × 30 × 53); none is below 0.8. Over 40 whose sides are multiples of 8, 0.92, three
// below 0.8, the least 0.77 (816 × 2920 × 4912). Over networks' shapes 1.04, the least 0.81 (1576 × 3072 × 768); over
// the lab's 0.97, the least 0.85 (H200, 2026-11-27, operands not in the L2 cache; two more processes gave 1.40 and 1.41
// for the first); with operands in it 1.39, 0.91, 1.01 and 0.96, the least 0.77. The choice takes 3.0 % longer than the
// best plan, the mean of shapes that its constants were not fitted to, at worst 43 %; of the others 2.6, at worst 20 %.
// bfloat16 takes 0.94 to 1.00 of float16's time; e4m3 0.89 to 1.00 of the library's speed, with its error, 2.3e-4, which one
// level of sums raises to 1.9e-3 at 8192³.
// Four shapes were 0.75 to 0.82 (2026-11-26): 88 × 3496 × 2208, 208 × 2320 × 2496, 632 × 680 × 2504, 88 × 544 × 10624. The
// best plan of each, of 71 to 176 that were timed, takes 1.18, 1.11, 1.13 and 1.02 times the library's time. Tiles of 48 and
// 96 columns, swapped, are of these; for the second the rule still takes another, 1.15 times as long. Under ncu the library
// launches 64 × 48, 64 × 104 and 64 × 64 in clusters of 4 × 2, and reads 37, 35 and 45 MB from L2 where the plan of that
// day read 58, 37 and 75. Such clusters of these tiles took 14.6 µs of the third, pairs 14.3, the library 12.4.
// Of nine slow ones of that day the best plan of all takes (H200) 21.4 µs of 136 × 1080 × 13184, the library 17.5; 50.8
// and 45.5 of 792 × 1656 × 8408; 98.6 and 83.0 of 872 × 2096 × 14480; 21.8 and 16.5 of 492 × 13734 × 66; and 2794 ×
// 4309 × 22, at 0.71 by any tile of this file, 22.6 and 20.7 by any_rows.cu with warps over the tile. What the rule
// takes wrong at worst is parts of tiles of 128 × 192 where rows are no multiples of 128 bytes: 2624 × 408 × 8296 65.3
// µs, 45.6 by pairs of 128 × 128.
// What limits the multiples of 8: the library has tiles 80 and 144 columns wide. Under ncu on an H100 its tensor cores are
// 52 to 60 % of the time at work, these 37 to 49 %: 3080 × 336 × 2504 leaves 57 of 132 multiprocessors without a tile of
// 128 × 128, and 1576 × 3072 × 768 fills two thirds of the last 128 × 192 of a row. A width between 128 and 192 would need
// boxes of B of its own. And where rows are no multiples of 128 bytes each line of a box lies in two of the L2 cache, of
// which a multiprocessor asks for one in 1.8 ns. Clusters of 4 × 2 blocks ask for the fewest, and share tiles of any width:
// where a tile has no box for each block, each loads some of the depth of all (472 × 1592 × 3560 0.85 to 0.96 of the
// library). But there is room for 15 such clusters, not 16, and for 39 of three: with one more to do all wait for a second
// wave, so the rule counts them as the driver does. Sums of parts that are asked for one after the other took 34 µs of
// 128 × 256 × 65536, all at once 28.
// Tried and left out: the steps of the last waves divided evenly among all blocks (stream-K), which took 0.9 to 2.1 times
// as long as whole tiles, since blocks at different depths share nothing in the L2 cache. By the rule it would gain 0.3,
// 0.8, 0.7 and 1.7 % in the mean over the lab's shapes, networks', drawn ones and multiples of 8, at most 22 % (2624 × 408
// × 8296), if meeting cost what it costs `parts` and nothing else were lost. Threads that copy rows of any length
// themselves took from 0.85 to 10 times the time of the copy to wider rows.
// FACTORS: of 16 bits, or e4m3, two of which count as one in all that is said of k. Tensor cores keep 13 bits of sums of
// e4m3, 25 of the others: with LEVELS = 2 each stage's 128 products are summed there, and the stages in FP32 registers,
// twice as many, so in tiles of 64 × 128 for a consumer at most.
// a is m × k, or k × m with TRANSPOSED_A; b is k × n, or n × k with TRANSPOSED_B; rows of both are multiples of 8.
// BM, BN: rows and columns of a tile. CONSUMERS: warpgroups that multiply. STAGES: pairs of tiles in shared memory.
// BLOCKS: on a multiprocessor at a time. STACK: blocks, one below the other, that share tiles of B. SIDE: likewise beside
// each other, of A.
// With SPLIT or MEET each block computes one tile, so the grid has as many; with MEET all must be at work at a time.
#include <cuda_bf16.h>
#include <warplab/hopper.cuh>

#ifndef FACTORS
#define FACTORS FLOAT16
#endif
#ifndef LEVELS
#define LEVELS 1
#endif
#ifndef RESULT
#define RESULT half
#endif
#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef CONSUMERS
#define CONSUMERS 2
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef SPLIT
#define SPLIT 1
#endif
#ifndef STACK
#define STACK 1
#endif
#ifndef SIDE
#define SIDE 1
#endif
#ifndef TRANSPOSED_A
#define TRANSPOSED_A 0
#endif
#ifndef TRANSPOSED_B
#define TRANSPOSED_B 0
#endif
#ifndef DIRECT
#define DIRECT 0
#endif
#ifndef MEET
#define MEET 0
#endif
#ifndef AT_ONCE
#define AT_ONCE 4
#endif
#ifndef SWAPPED
#define SWAPPED 0
#endif

constexpr int BK = 64;                                     // depth of a stage
constexpr int ROWS = BM / CONSUMERS / 64;                  // wgmma one below the other in a warpgroup
constexpr int SUMS = BN / 2;                               // of a thread for each of them
constexpr int FOURS = ROWS * SUMS / 4;                     // of a thread: two columns of two rows, eight apart
constexpr int WORKERS = 128 * CONSUMERS, THREADS = WORKERS + 32;  // the last warp loads
constexpr int A_BYTES = BM * LINE_BYTES, STAGE_BYTES = A_BYTES + BN * LINE_BYTES, BOX_BYTES = 64 * LINE_BYTES;
constexpr int COLUMN = SPLIT * STACK, CLUSTER = COLUMN * SIDE;  // blocks
constexpr int SHARING = STACK + SIDE - 1;  // that read what a block loads
constexpr int C_COLUMNS = LINE_BYTES / sizeof(RESULT), BOXES = BLOCKS > 1 ? 1 : 2;  // of a box of C; of a warpgroup
constexpr int LINES_AT_ONCE = ROWS * SUMS < 96 ? 4 : 1;    // of C that a warp stores, as registers allow
constexpr int OWN = FOURS / SPLIT;                         // that a block of a cluster adds up
static_assert(BM % (64 * CONSUMERS) == 0 && FOURS % SPLIT == 0 && BN / STACK % 8 == 0 && BM / SIDE % 8 == 0, "equal shares");
static_assert(BN % 64 == 0 || TRANSPOSED_B, "lines of a box of B are 64 columns");

#if SPLIT * STACK * SIDE > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS  // a launch in clusters of one block would take longer
#endif

// Two results of 16 bits, rounded.
template <typename T>
__device__ __forceinline__ half2 both(float x, float y, T) {
    return __floats2half2_rn(x, y);
}

__device__ __forceinline__ half2 both(float x, float y, __nv_bfloat16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    return *reinterpret_cast<const half2 *>(&pair);
}

__device__ __forceinline__ void store2(float *to, float x, float y) {
    *reinterpret_cast<float2 *>(to) = make_float2(x, y);
}

template <typename T>
__device__ __forceinline__ void store2(T *to, float x, float y) {
    *reinterpret_cast<half2 *>(to) = both(x, y, T());
}

// A warp stores a line of a box of C, of which `left` elements are in C: 128 bytes that may start at any element.
__device__ __forceinline__ void store_line(float *to, unsigned box, int line, int left) {
    const int lane = threadIdx.x % 32;
    float v;
    asm volatile("ld.shared.f32 %0, [%1];"
                 : "=f"(v)
                 : "r"(box + line * LINE_BYTES + ((lane / 4) ^ (line % 8)) * 16 + lane % 4 * 4)
                 : "memory");
    if (lane < left) {
        to[lane] = v;
    }
}

template <typename T>  // of 16 bits
__device__ __forceinline__ void store_line(T *to, unsigned box, int line, int left) {
    const int lane = threadIdx.x % 32;
    unsigned v;
    asm volatile("ld.shared.b32 %0, [%1];"
                 : "=r"(v)
                 : "r"(box + line * LINE_BYTES + ((lane / 4) ^ (line % 8)) * 16 + lane % 4 * 4)
                 : "memory");
    // Words of two elements, of which the first line starts at an odd one where `to` does: these are one to the left.
    const int odd = (unsigned long long)to / 2 % 2, first = 2 * lane - odd;
    const unsigned before = __shfl_up_sync(0xffffffff, v, 1), word = odd ? __funnelshift_r(before, v, 16) : v;
    unsigned short *const words = reinterpret_cast<unsigned short *>(to);
    if (first >= 0 && first + 1 < left) {
        *reinterpret_cast<unsigned *>(words + first) = word;
    } else if (first >= 0 && first < left) {
        words[first] = word;
    } else if (first < 0 && left > 0) {
        words[0] = v;
    }
    if (odd && lane == 31 && left >= 64) {
        words[63] = v >> 16;
    }
}

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, BLOCKS)
    tensor_core_every_shape(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                            const __grid_constant__ TensorMap c_map, RESULT *c, float4 *partials, unsigned *counters,
                            int m, int n, int k, int parts, int group) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    const unsigned stages = (shared_address(memory) + 1023) / 1024 * 1024;  // the swizzle repeats after 1024 bytes
    const unsigned full_at = shared_address(full), empty_at = shared_address(empty);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0, split = rank % SPLIT;
    const int stack = rank / SPLIT % STACK, side = rank / COLUMN;
    if (threadIdx.x == WORKERS) {
        prefetch_map(a_map);
        prefetch_map(b_map);
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(full_at + 8 * stage, 1);
            barrier_init(empty_at + 8 * stage, CONSUMERS * 4 * SHARING);  // each warp that reads what is loaded here
        }
        fence_barrier_init();
    }
    if (CLUSTER > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }

    // Units of work: parts of tiles, STACK tiles at a time.
    const int height = (m - 1) / (BM * STACK) + 1, width = (n - 1) / (BN * SIDE) + 1, steps = (k - 1) / BK + 1;
    const int units = height * width * parts, clusters = gridDim.x / CLUSTER;
    struct Unit {
        int tile, part, row, column, begin, end;  // begin, end: steps
    };
    auto unit_of = [&](int number) {
        Unit unit;
        unit.tile = MEET ? number / parts : number;
        unit.part = MEET ? number - unit.tile * parts : 0;
        place_of(unit.tile, height, width, group, unit.row, unit.column);
        unit.row = (unit.row * STACK + stack) * BM;
        unit.column = (unit.column * SIDE + side) * BN;
        const int share = unit.part * SPLIT + split, shares = parts * SPLIT;
        unit.begin = MEET || SPLIT > 1 ? (long long)steps * share / shares : 0;
        unit.end = MEET || SPLIT > 1 ? (long long)steps * (share + 1) / shares : steps;
        return unit;
    };
    int stage = 0, parity = 0;  // parity: of the phase that the stage's barriers are in
    auto advance = [&]() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    };

    if (warp == CONSUMERS * 4) {
        if (lane == 0) {
            wait_for_kernel_before();  // which may be the one that pads the operands
            for (int number = blockIdx.x / CLUSTER; number < units; number += clusters) {
                const Unit unit = unit_of(number);
                for (int step = unit.begin; step < unit.end; step++) {
                    const unsigned a_to = stages + stage * STAGE_BYTES, b_to = a_to + A_BYTES;
                    const unsigned barrier = full_at + 8 * stage;
                    barrier_wait(empty_at + 8 * stage, parity ^ 1);
                    barrier_expect(barrier, STAGE_BYTES);
                    // Of A each block loads a share for those beside it, of B for those above and below: boxes, or of
                    // each box whose lines are along the other side some of the depth, where they cannot share boxes.
                    constexpr bool A_DEEP = TRANSPOSED_A && BM / 64 % SIDE, B_DEEP = !TRANSPOSED_B && BN / 64 % STACK;
                    constexpr int A_SHARES = TRANSPOSED_A ? BM / 64 / (A_DEEP ? 1 : SIDE) : 1;
                    constexpr int A_LINES = TRANSPOSED_A ? 64 : BM / SIDE;
#pragma unroll
                    for (int i = 0; i < A_SHARES; i++) {
                        const int deep = A_DEEP ? side * (64 / SIDE) : 0;
                        const int at = A_DEEP ? i * 64 : (i * SIDE + side) * A_LINES;  // row of the tile
                        const int x = TRANSPOSED_A ? unit.row + at : step * BK;
                        const int y = TRANSPOSED_A ? step * BK + deep : unit.row + at;
                        if (SIDE > 1) {
                            const unsigned short blocks = ((1 << CLUSTER) - 1) / ((1 << COLUMN) - 1) << rank % COLUMN;
                            load_box_for(blocks, a_to + (at + deep) * LINE_BYTES, a_map, x, y, barrier);
                        } else {
                            load_box(a_to + at * LINE_BYTES, a_map, x, y, barrier);
                        }
                    }
                    constexpr int SHARES = TRANSPOSED_B ? 1 : BN / 64 / (B_DEEP ? 1 : STACK);
                    constexpr int LINES = TRANSPOSED_B ? BN / STACK : 64;
#pragma unroll
                    for (int i = 0; i < SHARES; i++) {
                        const int deep = B_DEEP ? stack * (64 / STACK) : 0;
                        const int at = B_DEEP ? i * 64 : (i * STACK + stack) * LINES;  // column of the tile
                        const int x = TRANSPOSED_B ? step * BK : unit.column + at;
                        const int y = TRANSPOSED_B ? unit.column + at : step * BK + deep;
                        if (STACK > 1) {
                            const unsigned short blocks = ((1 << COLUMN) - 1) / ((1 << SPLIT) - 1)
                                                          << (split + COLUMN * side);
                            load_box_for(blocks, b_to + (at + deep) * LINE_BYTES, b_map, x, y, barrier);
                        } else {
                            load_box(b_to + at * LINE_BYTES, b_map, x, y, barrier);
                        }
                    }
                    advance();
                }
            }
        }
        __syncwarp();
        if (SPLIT > 1) {
            cluster_sync();
            cluster_sync();
        }
        if (SHARING > 1) {
            cluster_sync();
        }
        return;
    }

    const int consumer = warp / 4;
    constexpr int A_MAJOR = TRANSPOSED_A ? MN_MAJOR : K_MAJOR, A_DEPTH = TRANSPOSED_A ? LINE_BYTES : 2;
    constexpr int B_MAJOR = TRANSPOSED_B ? K_MAJOR : MN_MAJOR, B_DEPTH = TRANSPOSED_B ? 2 : LINE_BYTES;
    const unsigned own = stages + consumer * ROWS * BOX_BYTES;
    const unsigned long long first_a = TRANSPOSED_A ? mn_major(own, 0, BK) : k_major(own, 0, 0);
    const unsigned long long first_b =
        TRANSPOSED_B ? k_major(stages + A_BYTES, 0, 0) : mn_major(stages + A_BYTES, 0, BK);
    auto release = [&](int done) {
        if (SHARING == 1 && lane == 0) {
            barrier_arrive(empty_at + 8 * done);
        } else if (SHARING > 1 && lane < STACK) {
            barrier_arrive(empty_at + 8 * done, split + SPLIT * lane + COLUMN * side);
        } else if (SHARING > 1 && lane < SHARING) {  // those beside it
            const int other = lane - STACK;
            barrier_arrive(empty_at + 8 * done, rank % COLUMN + COLUMN * (other + (other >= side)));
        }
    };
    // Where thread `of` has its four number i, and whether the first of its rows and columns are in C.
    struct Place {
        int row, column;
        bool inside;
    };
    auto place = [&](const Unit &unit, int of, int i) {
        Place at;
        at.row = unit.row + (of / 128 * ROWS + i / (SUMS / 4)) * 64 + of / 32 % 4 * 16 + of % 32 / 4;
        at.column = unit.column + i % (SUMS / 4) * 8 + of % 4 * 2;
        at.inside = at.row < m && at.column < n;
        return at;
    };
    const bool pairs = !SWAPPED && n % 2 == 0 && (unsigned long long)c % (2 * sizeof(RESULT)) == 0;
    auto put = [&](int row, int column, float x, float y) {  // of one row, if it is in C
        RESULT *const to = SWAPPED ? c + size_t(column) * m + row : c + size_t(row) * n + column;
        if (row < m && pairs) {
            store2(to, x, y);
        } else if (row < m) {
            *to = RESULT(x);
            if (column + 1 < n) {
                to[SWAPPED ? m : 1] = RESULT(y);
            }
        }
    };
    int stored = 0;  // boxes so far
    const bool one = threadIdx.x % 128 == 0;
    for (int number = blockIdx.x / CLUSTER; number < units; number += clusters) {
        const Unit unit = unit_of(number);
        float sum[ROWS][SUMS], total[LEVELS == 2 ? ROWS : 1][LEVELS == 2 ? SUMS : 1] = {};
        int before = 0;
        for (int step = unit.begin; step < unit.end; step++) {
            const unsigned long long a = moved(first_a, stage * STAGE_BYTES), b = moved(first_b, stage * STAGE_BYTES);
            barrier_wait(full_at + 8 * stage, parity);
            wgmma_fence();
#pragma unroll
            for (int depth = 0; depth < BK; depth += 16) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    wgmma<A_MAJOR, B_MAJOR, FACTORS>(sum[i], moved(a, i * BOX_BYTES + depth * A_DEPTH),
                                                     moved(b, depth * B_DEPTH),
                                                     (LEVELS == 1 && step > unit.begin) || depth > 0);
                }
            }
            wgmma_commit();
            if constexpr (LEVELS == 2) {
                wgmma_wait<0>();
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    settle(sum[i]);
#pragma unroll
                    for (int j = 0; j < SUMS; j++) {
                        total[i][j] += sum[i][j];
                    }
                }
                release(stage);
                advance();
                continue;
            }
            wgmma_wait<1>();  // for the stage before
            if (step > unit.begin) {
                release(before);
            }
            before = stage;
            advance();
        }
        if constexpr (LEVELS == 2) {
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
#pragma unroll
                for (int j = 0; j < SUMS; j++) {
                    sum[i][j] = total[i][j];
                }
            }
        } else {
            wgmma_wait<0>();
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                settle(sum[i]);
            }
            release(before);
        }
        auto four = [&](int i) { return &sum[i / (SUMS / 4)][i % (SUMS / 4) * 4]; };
        auto store = [&](int i) {
            const Place at = place(unit, threadIdx.x, i);
            const float *v = four(i);
            if (at.inside) {
                put(at.row, at.column, v[0], v[1]);
                put(at.row + 8, at.column, v[2], v[3]);
            }
        };

        if constexpr (MEET) {
            float4 *const tile = partials + size_t(unit.tile) * parts * (BM * BN / 4);
#pragma unroll
            for (int i = 0; i < FOURS; i++) {
                const float *v = four(i);
                if (place(unit, threadIdx.x, i).inside) {
                    __stcg(tile + size_t(unit.part) * (BM * BN / 4) + i * WORKERS + threadIdx.x,
                           make_float4(v[0], v[1], v[2], v[3]));
                }
            }
            // From 0 up to `parts`, as they come, and on as they go: the last one leaves 0 again.
            __threadfence();
            threads_sync<WORKERS>(15);
            if (threadIdx.x == 0) {
                atomicInc(counters + unit.tile, 2 * parts - 1);
                unsigned come;
                do {
                    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                                 : "=r"(come)
                                 : "l"(counters + unit.tile)
                                 : "memory");
                } while (come < parts);
            }
            threads_sync<WORKERS>(15);
            // Its share: MEET lanes add up one four, each some of the parts; AT_ONCE fours at a time, of IN_FLIGHT parts,
            // all asked for before the first is added, however few are left: L2 takes longer than all adding does.
            constexpr int LANES = MEET ? MEET : 1, IN_FLIGHT = 16 / AT_ONCE;
            constexpr int NEXT = WORKERS / LANES;
            const int begin = (long long)(BM * BN / 4) * unit.part / parts;
            const int end = (long long)(BM * BN / 4) * (unit.part + 1) / parts;
            const int turn = lane % LANES, from = parts * turn / LANES, to = parts * (turn + 1) / LANES;
            for (int start = begin; start < end; start += NEXT * AT_ONCE) {
                const int first = start + threadIdx.x / LANES;
                float4 v[AT_ONCE] = {};
                bool inside[AT_ONCE];
                auto place_of_sum = [&](int i) {
                    const int at = first + i * NEXT;
                    return place(unit, at % WORKERS, at / WORKERS);
                };
#pragma unroll
                for (int i = 0; i < AT_ONCE; i++) {
                    inside[i] = first + i * NEXT < end && place_of_sum(i).inside;
                }
                for (int part = from; part < to; part += IN_FLIGHT) {
                    float4 w[IN_FLIGHT][AT_ONCE] = {};
#pragma unroll
                    for (int j = 0; j < IN_FLIGHT; j++) {
#pragma unroll
                        for (int i = 0; i < AT_ONCE; i++) {
                            if (inside[i] && part + j < to) {
                                w[j][i] = __ldcg(tile + size_t(part + j) * (BM * BN / 4) + first + i * NEXT);
                            }
                        }
                    }
#pragma unroll
                    for (int j = 0; j < IN_FLIGHT; j++) {
#pragma unroll
                        for (int i = 0; i < AT_ONCE; i++) {
                            v[i].x += w[j][i].x, v[i].y += w[j][i].y, v[i].z += w[j][i].z, v[i].w += w[j][i].w;
                        }
                    }
                }
#pragma unroll
                for (int i = 0; i < AT_ONCE; i++) {
#pragma unroll
                    for (int away = 1; away < LANES; away *= 2) {
                        v[i].x += __shfl_xor_sync(0xffffffff, v[i].x, away);
                        v[i].y += __shfl_xor_sync(0xffffffff, v[i].y, away);
                        v[i].z += __shfl_xor_sync(0xffffffff, v[i].z, away);
                        v[i].w += __shfl_xor_sync(0xffffffff, v[i].w, away);
                    }
                    if (inside[i] && turn == 0) {
                        const Place at = place_of_sum(i);
                        put(at.row, at.column, v[i].x, v[i].y);
                        put(at.row + 8, at.column, v[i].z, v[i].w);
                    }
                }
            }
            threads_sync<WORKERS>(15);
            if (threadIdx.x == 0) {
                atomicInc(counters + unit.tile, 2 * parts - 1);
            }
        } else if constexpr (SPLIT > 1) {
            // Fours i / OWN belong to block i / OWN: the others send them into its stages, which all have read.
            auto room = [&](int sender, int i) {
                return stages + ((sender * OWN + i % OWN) * WORKERS + threadIdx.x) * 16;
            };
            cluster_sync();
#pragma unroll
            for (int i = 0; i < FOURS; i++) {
                const int owner = i / OWN, sender = (split - owner + SPLIT) % SPLIT - 1;
                const float *v = four(i);
                if (owner != split) {
                    store_there(room(sender, i), owner + SPLIT * stack + COLUMN * side, make_float4(v[0], v[1], v[2], v[3]));
                }
            }
            cluster_sync();
#pragma unroll
            for (int i = 0; i < FOURS; i++) {
                if (i / OWN == split) {
                    float *s = four(i);
#pragma unroll
                    for (int sender = 0; sender < SPLIT - 1; sender++) {
                        float4 v;
                        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                                     : "r"(room(sender, i))
                                     : "memory");
                        s[0] += v.x, s[1] += v.y, s[2] += v.z, s[3] += v.w;
                    }
                    store(i);
                }
            }
        } else if constexpr (SWAPPED) {
#pragma unroll
            for (int i = 0; i < FOURS; i++) {
                store(i);
            }
        } else {
            // Box after box of C, in BOXES buffers; one thread of the warpgroup asks TMA to write them.
#pragma unroll
            for (int panel = 0; panel < BN / C_COLUMNS; panel++) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    const unsigned box = stages + STAGES * STAGE_BYTES + (consumer * BOXES + stored++ % BOXES) * BOX_BYTES;
                    if (DIRECT) {
                        __syncwarp();
                    } else {
                        if (one) {
                            stores_have_read<BOXES - 1>();
                        }
                        group_sync(1 + consumer);
                    }
                    const float *s = &sum[i][panel * C_COLUMNS / 2];
                    if constexpr (sizeof(RESULT) == 2) {
#pragma unroll
                        for (int j = 0; j < 8; j += 2) {
                            const float *v = s + j * 4;
                            keep_16x16(box, warp % 4 * 16, j * 8, both(v[0], v[1], RESULT()), both(v[2], v[3], RESULT()),
                                       both(v[4], v[5], RESULT()), both(v[6], v[7], RESULT()));
                        }
                    } else {
#pragma unroll
                        for (int j = 0; j < C_COLUMNS / 8; j++) {
#pragma unroll
                            for (int h = 0; h < 2; h++) {
                                keep2(box, warp % 4 * 16 + h * 8 + lane / 4, j * 8 + lane % 4 * 2, s[j * 4 + h * 2],
                                      s[j * 4 + h * 2 + 1], RESULT());
                            }
                        }
                    }
                    const int row = unit.row + (consumer * ROWS + i) * 64, column = unit.column + panel * C_COLUMNS;
                    if (DIRECT) {
                        __syncwarp();
#pragma unroll LINES_AT_ONCE
                        for (int line = warp % 4 * 16; line < warp % 4 * 16 + 16 && row + line < m; line++) {
                            store_line(c + size_t(row + line) * n + column, box, line, n - column);
                        }
                        continue;
                    }
                    fence_for_tma();
                    group_sync(1 + consumer);
                    if (one) {
                        if (row < m && column < n) {
                            store_box(c_map, box, column, row);
                        }
                        stores_commit();
                    }
                }
            }
        }
    }
    if (one) {
        stores_have_read<0>();
    }
    if (SHARING > 1) {
        cluster_sync();  // others may still arrive at this block's barriers
    }
}
