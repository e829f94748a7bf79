// What the tensor cores can do at most: wgmma on tiles that stay in shared memory, and mma.sync on registers alone.
// Random numbers, because zeros take less power and let the clock rise.
// Reached beside the ladder of 8192³ on an H100: 827 TFLOP/s with wgmma, 532 with mma.sync. ncu
// (sm__inst_executed_pipe_tensor_op_hmma): a scheduler starts one mma.sync m16n8k16 in 6.0 clocks.
#include <warplab/hopper.cuh>

constexpr int GROUPS = 2;  // warpgroups of a block

// 2 × 64 × 256 × 64 operations a warpgroup and round.
extern "C" __global__ void __launch_bounds__(128 * GROUPS, 1) wgmma_peak(const uint4 *random, float *out, int rounds) {
    extern __shared__ unsigned char memory[];
    const unsigned tiles = (shared_address(memory) + 1023) / 1024 * 1024;
    const int group = threadIdx.x / 128;
    constexpr int CHUNKS = (GROUPS + 4) * 64 * LINE_BYTES / 16;  // a box of A for each warpgroup, four of B
    for (int i = threadIdx.x; i < CHUNKS; i += blockDim.x) {
        const uint4 v = random[i];
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(tiles + i * 16), "r"(v.x), "r"(v.y), "r"(v.z),
                     "r"(v.w)
                     : "memory");
    }
    fence_for_tma();  // wgmma reads shared memory as TMA does
    __syncthreads();
    const unsigned a_box = tiles + group * 64 * LINE_BYTES, b_boxes = tiles + GROUPS * 64 * LINE_BYTES;
    float sum[128];
#pragma unroll
    for (int i = 0; i < 128; i++) {
        sum[i] = 0;
    }
    for (int round = 0; round < rounds; round++) {
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < 64; depth += 16) {
            wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(a_box, 0, depth), mn_major(b_boxes, depth, 64), 1);
        }
        wgmma_commit();
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
    settle(sum);
    float total = 0;
#pragma unroll
    for (int i = 0; i < 128; i++) {
        total += sum[i];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

// 2 × 16 × 8 × 16 × CHAINS operations per warp and round.
constexpr int CHAINS = 16;

extern "C" __global__ void __launch_bounds__(256, 1) mma_peak(const uint4 *random, float *out, int rounds) {
    const uint4 a = random[threadIdx.x], b = random[threadIdx.x + blockDim.x];
    float sum[CHAINS][4] = {};
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < CHAINS; i++) {
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                "{%0, %1, %2, %3};"
                : "+f"(sum[i][0]), "+f"(sum[i][1]), "+f"(sum[i][2]), "+f"(sum[i][3])
                : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(i % 2 ? b.x : b.z), "r"(i % 2 ? b.y : b.w));
        }
    }
    float total = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) {
        total += sum[i][0] + sum[i][1] + sum[i][2] + sum[i][3];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}
