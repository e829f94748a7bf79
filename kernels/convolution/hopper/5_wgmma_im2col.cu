// 5. Hopper's own way: TMA walks the images itself, wgmma multiplies from shared memory, blocks stay.
// Changed: one thread asks TMA for a column of up to 256 pixels × 64 channels, by the column's first pixel and the tap.
// TMA's im2col mode knows padding and stride, goes on from row to row and from image to image, and puts zeros where a
// window is in the padding: no thread computes an index of x any more. w comes as boxes of filters × 64 channels of a
// tap. As in lab 05's step 6, a warp loads as far ahead as there are stages, one to four warpgroups multiply, blocks
// take tile after tile, and results leave through shared memory by TMA; bias and ReLU are taken on their way there.
// What is new are sizes of tiles for each layer (tile_sizes.py): 131 tiles of 192 × 128 fill 132 multiprocessors for
// conv3_x where 196 of 128 × 128 take two turns. Few pixels and a deep sum (conv5_x 3×3) are split: two blocks of a
// cluster take half of the depth each, and each sends half of its sums to the other's shared memory. Blocks side by
// side need the same pixels: each loads a share for all (multicast).
// The same kernel computes the gradient of x (GRADIENT): dy takes the place of x, and wgmma takes the filters as they
// lie, channels side by side ("N-major"). A stride makes a convolution of each phase of dx (Part), with some of the
// taps; TMA stores the pixels of a phase with gaps between them.
// Expected: an empty launch takes 3.4 µs. To that 1×1 adds the time of memory: 64 MB of conv2_x at 3 TB/s, 21 µs. 3×3
// adds that of shared memory: for 192 × 128 × 64 wgmma reads 72 KiB and TMA writes 40 KiB, 900 clocks where the
// products take 768; 18 such steps of conv3_x are 9 µs, with the first stage and the results 12.
// Reached: 25.6 and 18.1 µs. Over ResNet-50's layers at batch 32 1.05 of the speed of cuDNN's fastest plans, the
// geometric mean, and 0.93 at least; with bias and ReLU 1.06 and 0.95, in 1.01 of the time without; the gradient of x
// 1.06 and 0.91 (H100 80GB HBM3, 2026-11-27). In conv3_x each tap's pixels come from
// the L2 cache anew, 97 MB in all, and the 12 µs or so that this takes are 8 TB/s. Sharing filters by multicast, too,
// gained nothing; marking x and y as used once in the L2 cache gained 3 to 5 % for some layers and lost up to 7 % for
// others.
// BM, BN: pixels and filters of a tile. CONSUMERS: warpgroups that multiply. STAGES: pairs of tiles in shared memory.
// BLOCKS: on a multiprocessor at a time. SPLIT: blocks that share a tile's depth. BOXES: for results, of a warpgroup.
// BESIDE: blocks side by side that share pixels. PARTS: of a launch. FLAT: x is a matrix, pixels × channels. BK: channels
// of a chunk, 16 or 32 where x has no more, as TMA is slow where most of a box is outside of its tensor; of them DEPTHS
// times 16 are multiplied. C and K are multiples of 8; padded.py makes them so. BN below 64: all filters, forward. DEEP:
// blocks that share a tile's depth through global memory, each with sums of its own; conv_add_deep adds them. More than
// SPLIT can be, for one image with many channels. DIRECT: threads store y, as K is no multiple of 8 there (padded.py).
#include <warplab/hopper.cuh>

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
#ifndef DEEP
#define DEEP 1
#endif
#ifndef BOXES
#define BOXES 2
#endif
#ifndef BESIDE
#define BESIDE 1
#endif
#ifndef PARTS
#define PARTS 1
#endif
#ifndef FLAT
#define FLAT 0
#endif
#ifndef BK
#define BK 64
#endif
#ifndef DEPTHS
#define DEPTHS (BK / 16)
#endif
#ifndef GRADIENT
#define GRADIENT 0
#endif
#ifndef DIRECT
#define DIRECT 0
#endif
#ifndef BIAS
#define BIAS 0
#endif
#ifndef RELU
#define RELU 0
#endif

constexpr int LINE = BK * 2;                        // bytes of a pixel's or a filter's chunk, as wide as the swizzle
constexpr int GROUP = 2;                            // chunks: 256 bytes, which come from memory together
constexpr int ROWS = BM / CONSUMERS / 64;           // wgmma side by side in a warpgroup, 64 pixels each
constexpr int SUMS = BN / 2;                        // of a thread for each of them
constexpr int THREADS = 128 * CONSUMERS + 32;       // the last warp loads
constexpr int X_BYTES = BM * LINE, W_BYTES = BN * LINE, STAGE_BYTES = X_BYTES + W_BYTES;
constexpr int BOX_BYTES = 64 * LINE_BYTES;
constexpr int WIDTH = BN < 64 ? BN : 64;            // filters of a panel
constexpr int PANELS = BN / WIDTH;                  // of a tile of y: boxes of filters side by side
constexpr int CLUSTER = SPLIT * BESIDE;             // blocks
constexpr int SHARES = SPLIT * DEEP;                // of a tile's depth
constexpr int X_SHARE = BM / BESIDE;                // pixels that a block loads for all beside it
static_assert(BM % (64 * CONSUMERS) == 0 && PANELS % SPLIT == 0, "equal shares");
static_assert(X_SHARE % 8 == 0, "shares are whole periods of the swizzle");
static_assert((SPLIT - 1) * BM * BN * 4 / SPLIT <= STAGES * STAGE_BYTES, "the stages take the sums of others");
static_assert(DEEP == 1 || SPLIT == 1 && PARTS == 1, "one way to share, and one result without gaps");
static_assert(BN >= 64 || !GRADIENT, "what lies channels side by side comes 64 channels wide");

// A convolution with windows one pixel apart in y, of which y may have every second pixel only: a forward pass has one
// part, a gradient of x one for each phase of the stride.
struct Part {
    TensorMap x, w, y;
    int pixels;                     // of y
    int image, width;               // pixels of an image of y, of one of its rows
    int top, left, down, right;     // where the first window starts in x, and how far the next one is
    int rows, columns;              // taps
    int dilation_h, dilation_w;     // from tap to tap, in x
    int first_tap, next_row, next_column;  // in w, whose taps are counted row by row
    int bias;                              // of the first filter: of a group's
    int pitch;                             // of y's pixels, and where the first one is: DIRECT
    half *to;
};

struct Parts {
    Part part[PARTS];
    int channels, filters;
};

struct Tile {
    int part, pixel, filter;
};

__device__ __forceinline__ int tiles_high(const Part &part) {
    return (part.pixels + BM - 1) / BM;
}

// An operand in lines of BK: `k_major` for lines of any width.
__device__ __forceinline__ unsigned long long in_lines(unsigned address) {
    constexpr unsigned long long SWIZZLE = LINE == 128 ? 1 : LINE == 64 ? 2 : 3;
    return (address & 0x3FFFF) >> 4 | 1ull << 16 | (unsigned long long)(8 * LINE >> 4) << 32 | SWIZZLE << 62;
}

// Tile of a cluster number `tile`: those of one row of tiles come one after the other, so that their x is read from
// memory once.
__device__ __forceinline__ Tile tile_of(const Parts &parts, int tile, int tiles_wide) {
    int part = 0, row = tile / tiles_wide;
    const int column = tile - row * tiles_wide;
#pragma unroll
    for (int i = 0; i + 1 < PARTS; i++) {
        const int high = tiles_high(parts.part[i]);
        if (part == i && row >= high) {
            row -= high;
            part++;
        }
    }
    return {part, row * BM, column * BN * BESIDE};
}

// Stores a warp's 16 lines of a box, from `line` on: two filters for each thread, at once if K is even.
__device__ __forceinline__ void store_lines(const Part &part, unsigned box, int line, int pixel, int filter,
                                            int filters) {
    const bool even = part.pitch % 2 == 0 && reinterpret_cast<size_t>(part.to) % 4 == 0;
    const int lane = threadIdx.x % 32, first = even ? lane * 2 : lane;
    const int second = even ? first + 1 : first + 32;
    auto element = [&](int row, int at) {
        unsigned short found;
        const unsigned from = box + row * LINE_BYTES + ((at / 8 ^ row % 8) * 16) + at % 8 * 2;
        asm volatile("ld.shared.u16 %0, [%1];" : "=h"(found) : "r"(from) : "memory");
        return __ushort_as_half(found);
    };
    const bool one = filter + first < filters, two = filter + second < filters;
#pragma unroll 4
    for (int row = line; row < line + 16 && pixel + row < part.pixels; row++) {
        half *const to = part.to + size_t(pixel + row) * part.pitch + filter;
        const half low = one ? element(row, first) : half(0), high = two ? element(row, second) : half(0);
        if (even && two) {
            *reinterpret_cast<half2 *>(to + first) = __halves2half2(low, high);
            continue;
        }
        if (one) {
            to[first] = low;
        }
        if (two) {
            to[second] = high;
        }
    }
}

#if SPLIT * BESIDE > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS  // a launch in clusters of one block would take longer
#endif

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, BLOCKS)
    conv_wgmma_im2col(const __grid_constant__ Parts parts, const float *__restrict__ bias,
                      float *__restrict__ partial) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    const unsigned stages = (shared_address(memory) + 1023) / 1024 * 1024;  // the swizzle repeats after 1024 bytes
    const unsigned full_at = shared_address(full), empty_at = shared_address(empty);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    // Place in the cluster: share of the depth, and which of the tiles side by side.
    const int rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0, split = rank % SPLIT, beside = rank / SPLIT;
    auto rank_of = [&](int of_split, int of_beside) { return of_split + SPLIT * of_beside; };
    const int first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(full_at + 8 * stage, 1);
            barrier_init(empty_at + 8 * stage, CONSUMERS * 4 * BESIDE);
        }
        fence_barrier_init();
    }
    if (threadIdx.x == CONSUMERS * 128) {
        prefetch_map(parts.part[0].x);
        prefetch_map(parts.part[0].w);
        prefetch_map(parts.part[0].y);
    }
    if (CLUSTER > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    wait_for_kernel_before();  // that of padded.cu; else there is nothing to wait for

    const int tiles_wide = (parts.filters + BN * BESIDE - 1) / (BN * BESIDE), chunks = (parts.channels + BK - 1) / BK;
    int tiles = 0;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        tiles += tiles_high(parts.part[i]) * tiles_wide;
    }
    tiles *= DEEP;
    if (DEEP > 1) {
        let_next_kernel_start();
    }
    int stage = 0, parity = 0;  // parity: of the phase that the stage's barriers are in
    auto advance = [&]() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    };
    // Steps of a tile: for each GROUP of chunks of channels all taps, and for each tap these chunks. All taps read
    // about the same pixels, so that one part of x comes from memory while the one before is multiplied. A block of a
    // cluster takes its share.
    auto steps_of = [&](const Part &part, int tile, int &begin, int &end) {
        const int steps = part.rows * part.columns * chunks, share = SPLIT > 1 ? split : tile % DEEP;
        begin = SHARES > 1 ? steps * share / SHARES : 0;
        end = SHARES > 1 ? steps * (share + 1) / SHARES : steps;
    };

    if (warp == CONSUMERS * 4) {
        unsigned short x_blocks = 0;  // that get the pixels that this one loads
        for (int i = 0; i < BESIDE; i++) {
            x_blocks |= 1 << rank_of(split, i);
        }
        for (int tile = first; tile < tiles; tile += clusters) {  // SPLIT > 1: once, as each cluster has one tile
            if (lane == 0) {
                const Tile at = tile_of(parts, tile / DEEP, tiles_wide);
                const Part &part = parts.part[at.part];
                int begin, end;
                steps_of(part, tile, begin, end);
                const int pixel = at.pixel + beside * X_SHARE, filter = at.filter + beside * BN;
                const int n = pixel / part.image, in_image = pixel - n * part.image;
                const int p = in_image / part.width, q = in_image - p * part.width;
                const int row = part.top + p * part.down, column = part.left + q * part.right;
                const int taps = max(1, part.rows * part.columns);
                int first_chunk = begin / (taps * GROUP) * GROUP, last_chunk = min(first_chunk + GROUP, chunks);
                const int of_group = begin - taps * first_chunk, tap_of_group = of_group / (last_chunk - first_chunk);
                int chunk = first_chunk + of_group % (last_chunk - first_chunk);
                int r = tap_of_group / max(1, part.columns), s = tap_of_group - r * part.columns;
                for (int step = begin; step < end; step++) {
                    const unsigned to = stages + stage * STAGE_BYTES, barrier = full_at + 8 * stage;
                    const int tap = part.first_tap + r * part.next_row + s * part.next_column;
                    barrier_wait(empty_at + 8 * stage, parity ^ 1);
                    barrier_expect(barrier, STAGE_BYTES);
                    const unsigned x_to = to + beside * X_SHARE * LINE;
                    const unsigned short down = r * part.dilation_h, right = s * part.dilation_w;
                    if (FLAT && BESIDE > 1) {
                        load_box_for(x_blocks, x_to, part.x, chunk * BK, pixel, barrier);
                    } else if (FLAT) {
                        load_box(x_to, part.x, chunk * BK, pixel, barrier);
                    } else if (BESIDE > 1) {
                        load_pixels_for(x_blocks, x_to, part.x, chunk * BK, column, row, n, right, down, barrier);
                    } else {
                        load_pixels(x_to, part.x, chunk * BK, column, row, n, right, down, barrier);
                    }
                    if (GRADIENT) {
#pragma unroll
                        for (int panel = 0; panel < PANELS; panel++) {
                            load_box(to + X_BYTES + panel * BK * LINE_BYTES, part.w, filter + panel * 64, tap, chunk * BK,
                                     barrier);
                        }
                    } else {
                        load_box(to + X_BYTES, part.w, chunk * BK, tap, filter, barrier);
                    }
                    advance();
                    if (++chunk == last_chunk) {
                        if (++s == part.columns) {
                            s = 0;
                            if (++r == part.rows) {
                                r = 0;
                                first_chunk = last_chunk;
                                last_chunk = min(first_chunk + GROUP, chunks);
                            }
                        }
                        chunk = first_chunk;
                    }
                }
            }
            __syncwarp();
            if (SPLIT > 1) {
                cluster_sync();
                cluster_sync();
            }
        }
        if (BESIDE > 1) {
            cluster_sync();
        }
        return;
    }

    const int consumer = warp / 4;
    const unsigned boxes = stages + (STAGES * STAGE_BYTES + 1023) / 1024 * 1024 + consumer * BOXES * BOX_BYTES;  // of y
    const unsigned long long first_x = in_lines(stages + consumer * ROWS * 64 * LINE);
    const unsigned long long first_w = GRADIENT ? mn_major(stages + X_BYTES, 0, BK) : in_lines(stages + X_BYTES);
    constexpr int W_MAJOR = GRADIENT ? MN_MAJOR : K_MAJOR, W_DEPTH = GRADIENT ? LINE_BYTES : 2;
    const bool one = threadIdx.x % 128 == 0;
    // Whoever has loaded pixels into this stage may do so again: all blocks side by side.
    auto release = [&](int done) {
        if (BESIDE == 1 && lane == 0) {
            barrier_arrive(empty_at + 8 * done);
        } else if (BESIDE > 1 && lane < BESIDE) {
            barrier_arrive(empty_at + 8 * done, rank_of(split, lane));
        }
    };
    int stored = 0;  // boxes so far
    for (int tile = first; tile < tiles; tile += clusters) {
        Tile at = tile_of(parts, tile / DEEP, tiles_wide);
        at.filter += beside * BN;
        const Part &part = parts.part[at.part];
        int begin, end;
        steps_of(part, tile, begin, end);
        float2 biases[PANELS];  // lane l has those of columns 2 l and 2 l + 1 of each panel
#pragma unroll
        for (int i = 0; i < PANELS && BIAS; i++) {
            const int filter = at.filter + i * 64 + lane * 2;
            biases[i].x = filter < parts.filters ? __ldg(bias + part.bias + filter) : 0;
            biases[i].y = filter + 1 < parts.filters ? __ldg(bias + part.bias + filter + 1) : 0;
        }
        float sum[ROWS][SUMS];
        if ((GRADIENT || SHARES > 1) && begin == end) {  // a phase that no window meets, or fewer steps than blocks
#pragma unroll
            for (int i = 0; i < ROWS * SUMS; i++) {
                sum[i / SUMS][i % SUMS] = 0;
            }
        }
        int before = 0;
        for (int step = begin; step < end; step++) {
            const unsigned long long x = moved(first_x, stage * STAGE_BYTES), w = moved(first_w, stage * STAGE_BYTES);
            barrier_wait(full_at + 8 * stage, parity);
            wgmma_fence();
#pragma unroll
            for (int depth = 0; depth < DEPTHS * 16; depth += 16) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    wgmma<K_MAJOR, W_MAJOR>(sum[i], moved(x, i * 64 * LINE + depth * 2), moved(w, depth * W_DEPTH),
                                            step > begin || depth > 0);
                }
            }
            wgmma_commit();
            wgmma_wait<1>();  // for the stage before
            if (step > begin) {
                release(before);
            }
            before = stage;
            advance();
        }
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            settle(sum[i]);
        }
        if (begin < end) {
            release(before);
        }

        if (SPLIT > 1) {
            // Panel p belongs to block p % SPLIT: the others send it their sums, into the stages, which all have read.
            constexpr int OWN = PANELS / SPLIT;
            auto place = [&](int sender, int panel, int i) {
                const int group = ((sender * OWN + panel / SPLIT) * CONSUMERS + consumer) * ROWS + i;
                return stages + group * 64 * 64 * 4 + threadIdx.x % 128 * 16;
            };
            cluster_sync();
#pragma unroll
            for (int panel = 0; panel < PANELS; panel++) {
                const int owner = panel % SPLIT, sender = (split - owner + SPLIT) % SPLIT - 1;
#pragma unroll
                for (int i = 0; i < ROWS && sender >= 0; i++) {
#pragma unroll
                    for (int j = 0; j < 8; j++) {
                        const float *v = &sum[i][panel * 32 + j * 4];
                        store_there(place(sender, panel, i) + j * 2048, rank_of(owner, beside),
                                    make_float4(v[0], v[1], v[2], v[3]));
                    }
                }
            }
            cluster_sync();
#pragma unroll
            for (int panel = 0; panel < PANELS; panel++) {
                if (panel % SPLIT == split) {
#pragma unroll
                    for (int sender = 0; sender < SPLIT - 1; sender++) {
#pragma unroll
                        for (int i = 0; i < ROWS; i++) {
#pragma unroll
                            for (int j = 0; j < 8; j++) {
                                float4 v;
                                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                                             : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                                             : "r"(place(sender, panel, i) + j * 2048)
                                             : "memory");
                                float *s = &sum[i][panel * 32 + j * 4];
                                s[0] += v.x, s[1] += v.y, s[2] += v.z, s[3] += v.w;
                            }
                        }
                    }
                }
            }
        }

        if (DEEP > 1) {
#pragma unroll
            for (int i = 0; i < ROWS * SUMS; i += 2) {
                const int pixel = at.pixel + (consumer * ROWS + i / SUMS) * 64 + warp % 4 * 16 + i / 2 % 2 * 8 + lane / 4;
                const int filter = at.filter + i % SUMS / 4 * 8 + lane % 4 * 2;
                const int wide = (parts.filters + 7) / 8 * 8;
                if (pixel < part.pixels && filter < wide) {
                    const size_t to = (size_t(tile % DEEP) * part.pixels + pixel) * wide + filter;
                    *reinterpret_cast<float2 *>(partial + to) =
                        make_float2(sum[i / SUMS][i % SUMS], sum[i / SUMS][i % SUMS + 1]);
                }
            }
            continue;
        }

        // Box after box of y, in BOXES buffers; one thread of the warpgroup asks TMA to write them.
#pragma unroll
        for (int panel = 0; panel < PANELS; panel++) {
            if (SPLIT > 1 && panel % SPLIT != split) {
                continue;
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const unsigned box = boxes + stored++ % BOXES * BOX_BYTES;
                if (one) {
                    stores_have_read<BOXES - 1>();
                }
                group_sync(1 + consumer);
#pragma unroll
                for (int j = 0; j < WIDTH / 8; j += 2) {
                    half2 v[4];
#pragma unroll
                    for (int k = 0; k < 2; k++) {
                        const float *s = &sum[i][panel * 32 + (j + k) * 4];
                        float2 added = {0, 0};
                        if (BIAS) {
                            added.x = __shfl_sync(0xffffffff, biases[panel].x, (j + k) * 4 + lane % 4);
                            added.y = __shfl_sync(0xffffffff, biases[panel].y, (j + k) * 4 + lane % 4);
                        }
#pragma unroll
                        for (int h = 0; h < 2; h++) {
                            const float a = BIAS ? s[2 * h] + added.x : s[2 * h];
                            const float b = BIAS ? s[2 * h + 1] + added.y : s[2 * h + 1];
                            const half2 rounded = __floats2half2_rn(a, b);
                            v[2 * k + h] = RELU ? __hmax2_nan(rounded, half2{}) : rounded;  // two at a time
                        }
                    }
                    keep_16x16(box, warp % 4 * 16, j * 8, v[0], v[1], v[2], v[3]);
                }
                const int pixel = at.pixel + (consumer * ROWS + i) * 64, filter = at.filter + panel * 64;
                if (DIRECT) {
                    __syncwarp();
                    store_lines(part, box, warp % 4 * 16, pixel, filter, parts.filters);
                    continue;
                }
                fence_for_tma();
                group_sync(1 + consumer);
                if (one) {
                    if (pixel < part.pixels && filter < parts.filters) {
                        if (GRADIENT) {
                            const int n = pixel / part.image, in_image = pixel - n * part.image;
                            const int p = in_image / part.width;
                            store_pixels(part.y, box, filter, in_image - p * part.width, p, n);
                        } else {
                            store_box(part.y, box, filter, pixel);
                        }
                    }
                    stores_commit();
                }
            }
        }
    }
    if (one) {
        stores_have_read<0>();
    }
    if (BESIDE > 1) {
        cluster_sync();  // others may still arrive at this block's barriers
    }
}

// y = the sum of DEEP partial sums, in their order, with bias and ReLU. `quads`: four elements each, of pixels whose
// filters are rounded up to 8; `pitch`: of y's pixels.
extern "C" __global__ void conv_add_deep(const float4 *__restrict__ partial, half *__restrict__ y,
                                         const float *__restrict__ bias, int quads, int filters, int pitch) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, in_pixel = (filters + 7) / 8 * 2, pixel = i / in_pixel;
    const int filter = (i - pixel * in_pixel) * 4;
    wait_for_kernel_before();
    if (i >= quads || filter >= filters) {
        return;
    }
    float4 sum = partial[i];
#pragma unroll
    for (int deep = 1; deep < DEEP; deep++) {
        const float4 next = partial[size_t(deep) * quads + i];
        sum.x += next.x, sum.y += next.y, sum.z += next.z, sum.w += next.w;
    }
    const int left = filters - filter;
    if (BIAS) {
        const float *of = bias + filter;
        sum.x += of[0], sum.y += left > 1 ? of[1] : 0, sum.z += left > 2 ? of[2] : 0, sum.w += left > 3 ? of[3] : 0;
    }
    half2 result[2] = {__floats2half2_rn(sum.x, sum.y), __floats2half2_rn(sum.z, sum.w)};
    if (RELU) {
        result[0] = __hmax2_nan(result[0], half2{}), result[1] = __hmax2_nan(result[1], half2{});
    }
    half *const to = y + size_t(pixel) * pitch + filter;
    if (DIRECT) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (j < left) {
                to[j] = j % 2 ? __high2half(result[j / 2]) : __low2half(result[j / 2]);
            }
        }
    } else {
        *reinterpret_cast<uint2 *>(to) = *reinterpret_cast<const uint2 *>(result);
    }
}
