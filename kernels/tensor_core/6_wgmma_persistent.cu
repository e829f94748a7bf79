// 6. Step 5 with a warpgroup that only loads, blocks that stay, clusters that share tiles, and TMA for C, too.
// Changed: one thread of the first warpgroup loads, as far ahead as there are stages; the other two multiply, and
// neither waits for the other. Registers move from the first to them. Blocks stay on their multiprocessor and take tile
// after tile, in groups of rows as in step 4, so that the next tile is loaded while C is written. Blocks of a cluster
// lie one below the other and need the same tiles of B: each loads a share of these for all (multicast). C goes through
// shared memory, from where TMA writes it while the next products run.
// Expected: the tensor cores wait only for the first stage of the first tile and while both warpgroups write C to
// shared memory, some 1 % of the time at k = 8192. 2048 tiles on 132 multiprocessors take 16 turns where 15.5 would do,
// another 3 %, unless the GPU's power and not its clock is the limit. A pair of blocks loads a third less from the L2
// cache.
// Reached: 772 TFLOP/s, 1.02 of the library, within some 2 % in other runs. ncu: 0.99 of the rate per clock of
// wgmma_peak (peak.cu). What is left is the clock: 1.51 GHz at the 700 W that the card may draw, where wgmma_peak has
// 1.66, and 1.98 is the most. The autotuner found 128 blocks, 16 full turns, as fast as 132.
// n and k are multiples of 8. RESULT: type of C. STAGES: pairs of tiles in shared memory.
// CLUSTER: blocks of a cluster. GROUP: clusters' tiles of C run down before the next column. The grid is whole
// clusters.
#include <warplab/hopper.cuh>

#ifndef RESULT
#define RESULT float
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef CLUSTER
#define CLUSTER 2
#endif
#ifndef GROUP
#define GROUP 8
#endif

constexpr int CONSUMERS = 2;                     // warpgroups that multiply
constexpr int BM = 64 * CONSUMERS, BN = 256;     // rows and columns of the tile of C that a block computes
constexpr int BK = 64;                           // depth of the tiles it loads
constexpr int THREADS = 128 * (1 + CONSUMERS);
constexpr int A_BYTES = BM * LINE_BYTES, BOX_BYTES = BK * LINE_BYTES, BOXES = BN / 64;
constexpr int STAGE_BYTES = A_BYTES + BOXES * BOX_BYTES;
constexpr int C_COLUMNS = LINE_BYTES / sizeof(RESULT), C_BYTES = 64 * LINE_BYTES;  // of a box of C
static_assert(BOXES % CLUSTER == 0, "each block of a cluster loads equally many boxes of B");

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    tensor_core_wgmma_persistent(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                                 const __grid_constant__ TensorMap c_map, int m, int n, int k) {
    extern __shared__ unsigned char memory[];
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    const unsigned tiles = (shared_address(memory) + 1023) / 1024 * 1024;  // the swizzle repeats after 1024 bytes
    const unsigned full_at = shared_address(full), empty_at = shared_address(empty);
    // The same in all lanes, and the shuffle lets the compiler know: it can keep what depends on it once for a warp.
    const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const int rank = blockIdx.x % CLUSTER, steps = (k - 1) / BK + 1;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(full_at + 8 * stage, 1);                          // the arrival that announces the bytes
            barrier_init(empty_at + 8 * stage, CLUSTER * CONSUMERS * 4);  // each warp that reads what is loaded here
        }
        fence_barrier_init();
    }
    cluster_sync();

    // Tiles of clusters, CLUSTER tiles of blocks high.
    const int height = (m - 1) / (BM * CLUSTER) + 1, width = (n - 1) / BN + 1;
    const int first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    auto corner = [&](int tile, int &row, int &column) {
        place_of(tile, height, width, GROUP, row, column);
        row = (row * CLUSTER + rank) * BM;
        column *= BN;
    };
    int stage = 0, parity = 0, row, column;  // parity: of the phase that the stage's barriers are in
    auto advance = [&]() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    };

    if (group == 0) {
        give_registers<40>();
        if (threadIdx.x == 0) {
            for (int tile = first; tile < height * width; tile += clusters) {
                corner(tile, row, column);
                for (int step = 0; step < steps; step++) {
                    const unsigned to = tiles + stage * STAGE_BYTES, barrier = full_at + 8 * stage;
                    barrier_wait(empty_at + 8 * stage, parity ^ 1);
                    barrier_expect(barrier, STAGE_BYTES);
                    load_box(to, a_map, step * BK, row, barrier);
                    for (int i = 0; i < BOXES / CLUSTER; i++) {
                        const int box = i * CLUSTER + rank;
                        const unsigned b_to = to + A_BYTES + box * BOX_BYTES;
                        if (CLUSTER > 1) {
                            load_box_for((1 << CLUSTER) - 1, b_to, b_map, column + box * 64, step * BK, barrier);
                        } else {
                            load_box(b_to, b_map, column + box * 64, step * BK, barrier);
                        }
                    }
                    advance();
                }
            }
        }
        __syncwarp();
    } else {
        take_registers<232>();
        const int consumer = group - 1;
        const unsigned boxes = tiles + STAGES * STAGE_BYTES + consumer * 2 * C_BYTES;  // two of C
        const unsigned long long first_a = k_major(tiles, consumer * 64, 0), first_b = mn_major(tiles + A_BYTES, 0, BK);
        const bool one = threadIdx.x % 128 == 0;
        auto release = [&](int done) {
            if (lane < CLUSTER) {
                barrier_arrive(empty_at + 8 * done, lane);
            }
        };
        for (int tile = first; tile < height * width; tile += clusters) {
            corner(tile, row, column);
            float sum[128];
            int before = 0;
            for (int step = 0; step < steps; step++) {
                const unsigned long long a = moved(first_a, stage * STAGE_BYTES);
                const unsigned long long b = moved(first_b, stage * STAGE_BYTES);
                barrier_wait(full_at + 8 * stage, parity);
                wgmma_fence();
#pragma unroll
                for (int depth = 0; depth < BK; depth += 16) {
                    wgmma<K_MAJOR, MN_MAJOR>(sum, moved(a, depth * 2), moved(b, depth * LINE_BYTES), step + depth > 0);
                }
                wgmma_commit();
                wgmma_wait<1>();  // for the stage before
                if (step > 0) {
                    release(before);
                }
                before = stage;
                advance();
            }
            wgmma_wait<0>();
            settle(sum);
            release(before);

            // Box after box of C, in two buffers; one thread of the warpgroup asks TMA to write them.
#pragma unroll
            for (int part = 0; part < BN / C_COLUMNS; part++) {
                const unsigned box = boxes + part % 2 * C_BYTES;
                if (one) {
                    stores_have_read<1>();
                }
                group_sync(1 + consumer);
#pragma unroll
                for (int j = 0; j < C_COLUMNS / 8; j++) {
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        const int i = 4 * (part * (C_COLUMNS / 8) + j) + 2 * h;
                        keep2(box, warp * 16 + h * 8 + lane / 4, j * 8 + lane % 4 * 2, sum[i], sum[i + 1], RESULT());
                    }
                }
                fence_for_tma();
                group_sync(1 + consumer);
                const int box_row = row + consumer * 64, box_column = column + part * C_COLUMNS;
                if (one) {
                    if (box_row < m && box_column < n) {
                        store_box(c_map, box, box_column, box_row);
                    }
                    stores_commit();
                }
            }
        }
        if (one) {
            stores_have_read<0>();
        }
    }
    // No block ends while others of its cluster may still write to its shared memory or arrive at its barriers.
    cluster_sync();
}
