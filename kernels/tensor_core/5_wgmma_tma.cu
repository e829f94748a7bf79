// 5. Hopper's own way: TMA brings the tiles, wgmma multiplies them straight from shared memory.
// Changed: one thread asks for whole boxes of A and B, which arrive swizzled, with zeros outside the matrices, and
// report to a barrier in shared memory. Four warps together issue wgmma: 64 × 256 sums, 64 of k per stage, no fragments
// of A and B in registers. Two such warpgroups compute 128 × 256 elements of C from four stages.
// Expected: no more instructions for copies and addresses, and the full rate of the tensor cores, which mma.sync does
// not reach. For 64 × 256 × 16 wgmma reads 10 KiB: 80 passes in the 128 clocks of the products; TMA writes another 48
// in that time. What is left: at the end of each stage the block meets and the tensor cores wait, and so they do while
// a block starts and while it writes C.
// Reached: 551 TFLOP/s, 0.729 of the library. ncu: of the clocks from one instruction of a warp to its next it waits
// half at the barrier after a stage.
// n and k are multiples of 8. RESULT: type of C. STAGES: pairs of tiles in shared memory.
#include <warplab/hopper.cuh>

#ifndef RESULT
#define RESULT float
#endif
#ifndef STAGES
#define STAGES 4
#endif

constexpr int BM = 128, BN = 256;  // rows and columns of the tile of C that a block computes
constexpr int BK = 64;             // depth of the tiles it loads
constexpr int THREADS = 256;
constexpr int A_BYTES = BM * LINE_BYTES, BOX_BYTES = BK * LINE_BYTES, BOXES = BN / 64;
constexpr int STAGE_BYTES = A_BYTES + BOXES * BOX_BYTES;

__device__ __forceinline__ void store2(float *to, float x, float y) {
    *reinterpret_cast<float2 *>(to) = make_float2(x, y);
}

__device__ __forceinline__ void store2(half *to, float x, float y) {
    *reinterpret_cast<half2 *>(to) = __floats2half2_rn(x, y);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    tensor_core_wgmma_tma(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, RESULT *c,
                          int m, int n, int k) {
    extern __shared__ unsigned char memory[];
    __shared__ unsigned long long full[STAGES];
    const unsigned tiles = (shared_address(memory) + 1023) / 1024 * 1024;  // the swizzle repeats after 1024 bytes
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN, steps = (k - 1) / BK + 1;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(shared_address(&full[stage]), 1);
        }
        fence_barrier_init();
    }
    __syncthreads();
    auto load = [&](int step) {
        const int stage = step % STAGES;
        const unsigned to = tiles + stage * STAGE_BYTES, barrier = shared_address(&full[stage]);
        barrier_expect(barrier, STAGE_BYTES);
        load_box(to, a_map, step * BK, first_row, barrier);
        for (int box = 0; box < BOXES; box++) {
            load_box(to + A_BYTES + box * BOX_BYTES, b_map, first_column + box * 64, step * BK, barrier);
        }
    };
    if (threadIdx.x == 0) {
        for (int step = 0; step < min(STAGES, steps); step++) {
            load(step);
        }
    }

    const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    float sum[128];
    for (int step = 0; step < steps; step++) {
        const int stage = step % STAGES;
        const unsigned a_box = tiles + stage * STAGE_BYTES, b_boxes = a_box + A_BYTES;
        barrier_wait(shared_address(&full[stage]), step / STAGES % 2);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BK; depth += 16) {
            wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(a_box, group * 64, depth), mn_major(b_boxes, depth, BK),
                                     step + depth > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
        __syncthreads();  // both warpgroups have read this stage
        if (threadIdx.x == 0 && step + STAGES < steps) {
            load(step + STAGES);
        }
    }
    settle(sum);

#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = first_row + group * 64 + warp * 16 + h * 8 + lane / 4;
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            const int column = first_column + j * 8 + lane % 4 * 2;
            if (row < m && column < n) {
                store2(c + size_t(row) * n + column, sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1]);
            }
        }
    }
}
