// The gradient of the filters on Hopper: filters × pixels by pixels × taps, by wgmma, the pixels split over blocks.
// Changed from step 5: the sums run over pixels, and in NHWC both operands lie pixel after pixel. wgmma takes them so
// ("M-major", "N-major"): nothing is transposed. TMA brings dy as boxes of 64 pixels × 64 filters, and x, in im2col
// mode, as boxes of 64 pixels × 64 channels of a tap. Boxes of several taps lie side by side in a tile and share dy's.
// dw is small, and the pixels are many. So blocks share the pixels of a tile and write float32 sums, which a second
// kernel adds in a fixed order: no atomics, and the same result in every run. Its launch does not wait for the end of
// the first kernel, its threads do ("programmatic dependent launch").
// Expected: 1×1 of few channels is limited by memory: conv2_x with its 64 MB takes 21 µs at 3 TB/s. 3×3 is limited by
// shared memory: for 128 × 128 sums over 64 pixels wgmma reads 48 KiB and TMA writes 32 KiB, 640 clocks; the tensor
// cores need 512. A split costs the way of its sums to the L2 cache and back, and a launch.
// Reached: 1.04 of cuDNN's fastest plan, the geometric mean over ResNet-50's layers at batch 32, least 0.89, most 1.33;
// conv2_x 64 → 256 29.8 µs; 3×3 270 to 390 TFLOP/s (H100 80GB HBM3, 2026-11-27). In a run of 2026-11-22 27.5 of 29.5 µs
// were the first kernel's; 3.5 takes an empty one. ncu: in the first kernel the tensor cores are busy 42 to 44 % of the
// time, its start and its stores included. Not waiting with the second launch gains 1 to 2 µs.
// FILTER_BOXES × TAP_BOXES: of 64 × 64 elements of dw, in a tile. GROUPS: warpgroups that share the tile's filters.
// STAGES: of 64 pixels in shared memory. FLAT: x is a matrix, pixels × channels. PARTIAL: float32 sums leave, as they must
// where there are splits. C and K are multiples of 8; padded.py makes them so.
#include <warplab/hopper.cuh>
#include "sizes.cuh"

#ifndef FILTER_BOXES
#define FILTER_BOXES 2
#endif
#ifndef TAP_BOXES
#define TAP_BOXES 3
#endif
#ifndef GROUPS
#define GROUPS 2
#endif
#ifndef STAGES
#define STAGES 5
#endif
#ifndef FLAT
#define FLAT 0
#endif
#ifndef PARTIAL
#define PARTIAL 0
#endif

constexpr int BOX = 64;                                    // channels or filters of a box
constexpr int DEPTH = 64;                                  // pixels of a stage
constexpr int ADDERS = 128 * GROUPS;                       // threads of the warpgroups that multiply
constexpr int THREADS = ADDERS + 32;                       // and of a warp that loads
constexpr int ROWS = FILTER_BOXES / GROUPS;                // boxes of filters of a warpgroup
constexpr int BOX_BYTES = DEPTH * LINE_BYTES, STAGE_BYTES = (FILTER_BOXES + TAP_BOXES) * BOX_BYTES;
constexpr int OUT_BYTES = ROWS * TAP_BOXES * 2 * BOX_BYTES;  // of a warpgroup's sums, float32
static_assert(FILTER_BOXES % GROUPS == 0, "equal shares");
static_assert(GROUPS * OUT_BYTES <= STAGES * STAGE_BYTES, "in the end the sums take the room of the stages");

__device__ __forceinline__ int boxes_per_tap(const Sizes &sizes) {
    return (sizes.group_c - 1) / BOX + 1;
}

// Which tap, and from which channel on, number `box` of the boxes of x is: 64 channels, and tap after tap. Beyond the
// last tap it has no channels, and so is zeros.
__device__ __forceinline__ void place_of_box(const Sizes &sizes, int box, int &tap, int &channel) {
    tap = box / boxes_per_tap(sizes);
    channel = tap < sizes.r * sizes.s ? (box - tap * boxes_per_tap(sizes)) * BOX : sizes.c;
}

// A warpgroup's sums through shared memory, from `memory` on, to where TMA writes them: to rows of the map from `row`
// to before `end`, and the columns of the boxes from `box` on.
template <typename RESULT>
__device__ __forceinline__ void store_sums(const float (&sum)[ROWS][TAP_BOXES * 32], unsigned memory,
                                           const TensorMap &map, const Sizes &sizes, int row, int end, int box) {
    constexpr int WIDTH = LINE_BYTES / sizeof(RESULT), PARTS = BOX / WIDTH;  // columns in a line, lines in a box's row
    const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < ROWS * TAP_BOXES * PARTS; i++) {
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int at = (i % (TAP_BOXES * PARTS) * (WIDTH / 8) + j) * 4 + 2 * h;
                keep2(memory + i * BOX_BYTES, warp * 16 + h * 8 + lane / 4, j * 8 + lane % 4 * 2,
                      sum[i / (TAP_BOXES * PARTS)][at], sum[i / (TAP_BOXES * PARTS)][at + 1], RESULT());
            }
        }
    }
    fence_for_tma();
    group_sync(2 + group);
    if (threadIdx.x % 128 == 0) {
        const int boxes = min(TAP_BOXES, sizes.r * sizes.s * boxes_per_tap(sizes) - box);
        for (int column = 0; column < boxes; column++) {
            int tap, channel;
            place_of_box(sizes, box + column, tap, channel);
            for (int i = 0; i < ROWS && row + i * BOX < end; i++) {
                for (int part = 0; part < PARTS; part++) {
                    const unsigned from = memory + ((i * TAP_BOXES + column) * PARTS + part) * BOX_BYTES;
                    store_box(map, from, channel + part * WIDTH, tap, row + i * BOX);
                }
            }
        }
        stores_commit();
        stores_have_read<0>();
    }
}

// Blocks: tiles of dw, group by group, then the same of the next split. `to_map`: dw, or each split's float32 sums, in
// which the filters of a group are rounded up to a multiple of 64.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    conv_wgmma_backward_filter(const __grid_constant__ TensorMap dy_map, const __grid_constant__ TensorMap x_map,
                               const __grid_constant__ TensorMap to_map, const __grid_constant__ Sizes sizes,
                               int splits) {
    extern __shared__ unsigned char memory[];
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    const unsigned stages = (shared_address(memory) + 1023) / 1024 * 1024;  // the swizzle repeats after 1024 bytes
    const unsigned full_at = shared_address(full), empty_at = shared_address(empty);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32;

    const int all_boxes = sizes.r * sizes.s * boxes_per_tap(sizes);
    const int tiles_high = (sizes.group_k - 1) / (FILTER_BOXES * BOX) + 1;
    const int tiles = tiles_high * ((all_boxes - 1) / TAP_BOXES + 1);
    const int groups = sizes.k / sizes.group_k, tile = blockIdx.x % tiles;
    const int group = blockIdx.x / tiles % groups, split = blockIdx.x / tiles / groups;
    const int first_filter = tile % tiles_high * FILTER_BOXES * BOX, first_box = tile / tiles_high * TAP_BOXES;
    const int steps = (sizes.n * sizes.p * sizes.q - 1) / DEPTH + 1;
    const int begin = int((long long)(steps)*split / splits), end = int((long long)(steps) * (split + 1) / splits);
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(full_at + 8 * stage, 1);
            barrier_init(empty_at + 8 * stage, GROUPS * 4);
        }
        fence_barrier_init();
    }
    __syncthreads();
    wait_for_kernel_before();  // that of padded.cu; else there is nothing to wait for
    let_next_kernel_start();
    int stage = 0, parity = 0;  // parity: of the phase that the stage's barriers are in
    auto advance = [&]() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    };

    if (warp == GROUPS * 4) {
        if (lane == 0) {
            int channel[TAP_BOXES], down[TAP_BOXES], right[TAP_BOXES];
#pragma unroll
            for (int i = 0; i < TAP_BOXES; i++) {
                int tap;
                place_of_box(sizes, first_box + i, tap, channel[i]);
                channel[i] += group * sizes.group_c;
                down[i] = tap % (sizes.r * sizes.s) / sizes.s * sizes.dilation_h;
                right[i] = tap % sizes.s * sizes.dilation_w;
            }
            for (int step = begin; step < end; step++) {
                const unsigned to = stages + stage * STAGE_BYTES, barrier = full_at + 8 * stage;
                const int pixel = step * DEPTH, row = pixel / sizes.q, q = pixel - row * sizes.q;
                const int n = row / sizes.p, p = row - n * sizes.p;
                const int h = p * sizes.stride_h - sizes.pad_h, w = q * sizes.stride_w - sizes.pad_w;
                barrier_wait(empty_at + 8 * stage, parity ^ 1);
                barrier_expect(barrier, STAGE_BYTES);
                for (int i = 0; i < FILTER_BOXES; i++) {
                    load_box(to + i * BOX_BYTES, dy_map, group * sizes.group_k + first_filter + i * BOX, pixel, barrier);
                }
#pragma unroll
                for (int i = 0; i < TAP_BOXES; i++) {
                    const unsigned x_to = to + (FILTER_BOXES + i) * BOX_BYTES;
                    if (FLAT) {
                        load_box(x_to, x_map, channel[i], pixel, barrier);
                    } else {
                        load_pixels(x_to, x_map, channel[i], w, h, n, right[i], down[i], barrier);
                    }
                }
                advance();
            }
        }
    } else {
        const int warpgroup = warp / 4;
        const unsigned long long first_dy = mn_major(stages + warpgroup * ROWS * BOX_BYTES, 0, DEPTH);
        const unsigned long long first_x = mn_major(stages + FILTER_BOXES * BOX_BYTES, 0, DEPTH);
        float sum[ROWS][TAP_BOXES * 32];
        int before = 0;
        for (int step = begin; step < end; step++) {
            const unsigned long long dy = moved(first_dy, stage * STAGE_BYTES), x = moved(first_x, stage * STAGE_BYTES);
            barrier_wait(full_at + 8 * stage, parity);
            wgmma_fence();
#pragma unroll
            for (int depth = 0; depth < DEPTH; depth += 16) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    wgmma<MN_MAJOR, MN_MAJOR>(sum[i], moved(dy, i * BOX_BYTES + depth * LINE_BYTES),
                                              moved(x, depth * LINE_BYTES), step > begin || depth > 0);
                }
            }
            wgmma_commit();
            wgmma_wait<1>();  // for the stage before
            if (step > begin && lane == 0) {
                barrier_arrive(empty_at + 8 * before);
            }
            before = stage;
            advance();
        }
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            settle(sum[i]);
        }
        threads_sync<ADDERS>(1);  // all have read the stages that sums now go into
        const unsigned to = stages + warpgroup * OUT_BYTES;
        const int filter = first_filter + warpgroup * ROWS * BOX;
        if (!PARTIAL) {
            store_sums<half>(sum, to, to_map, sizes, filter, sizes.group_k, first_box);
        } else {
            const int first = (split * groups + group) * ((sizes.group_k - 1) / BOX + 1) * BOX;
            store_sums<float>(sum, to, to_map, sizes, first + filter, first + sizes.group_k, first_box);
        }
    }
}

// dw = sum of the splits. `quads`: of dw, four elements each; `stride`: from a split to the next. A thread takes every
// blockDim.y-th split, then the block adds their sums: always in the same order.
extern "C" __global__ void conv_add_splits(const float4 *partial, half *dw, int quads, int stride, int splits) {
    __shared__ float4 part[1024];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
    auto add = [&](float4 next) {
        sum.x += next.x;
        sum.y += next.y;
        sum.z += next.z;
        sum.w += next.w;
    };
    wait_for_kernel_before();
    if (i < quads) {
#pragma unroll 4
        for (int split = threadIdx.y; split < splits; split += blockDim.y) {
            add(partial[size_t(split) * stride + i]);
        }
    }
    if (blockDim.y > 1) {
        part[threadIdx.y * blockDim.x + threadIdx.x] = sum;
        __syncthreads();
        for (int y = 1; y < blockDim.y && threadIdx.y == 0; y++) {
            add(part[y * blockDim.x + threadIdx.x]);
        }
    }
    if (threadIdx.y == 0 && i < quads) {
        const half2 result[2] = {__floats2half2_rn(sum.x, sum.y), __floats2half2_rn(sum.z, sum.w)};
        reinterpret_cast<uint2 *>(dw)[i] = *reinterpret_cast<const uint2 *>(result);
    }
}
