// A CBR in float16 or INT8 and NHWC as Hopper multiplies: lab 06's last step, with a network around it.
//
// TMA brings a column of BM pixels × BK channels of a tap, and as many channels of BN filters; it knows padding and
// stride, and gives zeros outside. One warp asks for STAGES of them ahead, CONSUMERS warpgroups multiply. New here:
// - Sums begin with the bias, and the residual is a last step or two of the depth: TMA brings it ahead, too. A warp's
//   results go by shared memory of its own to the slices that the graph says, whole lines at a time.
// - A launch begins before the one before it has ended (`early`), and asks for its first filters meanwhile, which are
//   nobody's result. At one image most of a network's time is such beginnings and filters on their way.
// - One image leaves few tiles: SPLIT blocks of a cluster share a tile's depth, and each adds up a share of its sums, in
//   an order that is always the same.
// - INT8: sums are whole numbers, and a result is sum · scale + bias in steps of y, rounded. Filters lie in an order in
//   which a thread's four results are neighbours, so that they are one word of y and of the residual.
// Expected: a layer at batch 32 takes the time of its bytes or of its products, as in lab 06; one image 2 to 3 µs.
// Reached: ResNet-50 at batch 1, 32, 128 in 2.14, 1.61 and 1.59 of the speed of torch.compile (0.209, 0.83, 2.72 ms), with
// cuDNN's fused graphs in the same engine as the second (1.46, 1.20, 1.18), in a CUDA graph (H200, 2026-11-26). Threads
// that exchanged results by shuffles and stored 64 bytes of a pixel took 1.1 of that at batch 32, and 69 for 41 µs in
// MobileNetV2's 16 to 96 channels of 112 × 112: some 110 instructions for 16 bytes, where stmatrix needs 20. A residual
// that threads loaded while products were computed took 43 for 35 µs at 56 × 56: too few bytes on their way.
// INT8: ResNet-50 at batch 128 in 1.88 ms, 0.69 of float16's 2.70 in the same process (H200, 2026-11-27; on an H100 0.62
// of 3.32). It took 2.00 while threads loaded scale and bias from global memory once a tile's products were done, and
// lines of 64 bytes had no more stages than those of 128. 1 × 1 from 64 to 256 channels with a residual takes 92 µs,
// where its bytes want 54.
// BLOCKS: on a multiprocessor at a time.
#include <warplab/hopper.cuh>
#include "view.cuh"

#ifndef BM
#define BM 128
#define BN 128
#define CONSUMERS 2
#define STAGES 4
#define BLOCKS 1
#define SPLIT 1
#define BK 64
#define SILU 0
#define INT8 0
#endif

#if INT8
using Element = signed char;
using Sum = int;
using Pair = char2;
#else
using Element = half;
using Sum = float;
using Pair = half2;
#endif
constexpr int LINE = BK * sizeof(Element);     // bytes of a pixel's or a filter's chunk, as wide as the swizzle
constexpr int ROWS = BM / CONSUMERS / 64;      // wgmma side by side in a warpgroup, 64 pixels each
constexpr int SUMS = BN / 2;                   // of a thread for each of them
constexpr int THREADS = 128 * CONSUMERS + 32;  // the last warp loads
constexpr int X_BYTES = BM * LINE, STAGE_BYTES = X_BYTES + BN * LINE;
constexpr int MOST_OUTPUTS = 4;
constexpr int EACH = 16 / sizeof(Element), FULL = EACH * 8;  // elements in 16 bytes and in a line of results
constexpr int WIDTH = BN < FULL ? BN : FULL, VECTORS = WIDTH / EACH;  // of a panel of results: filters, 16 bytes of a line
constexpr int BOX_BYTES = SPLIT == 1 ? 16 * LINE_BYTES : 0;     // of a warp's results
constexpr int PAIRS = ROWS * SUMS / 2, OWN = PAIRS / SPLIT;  // neighbouring sums of a thread; those that it adds up
static_assert(BM % (64 * CONSUMERS) == 0 && BN % 32 == 0 && PAIRS % SPLIT == 0, "equal shares");
static_assert((SPLIT - 1) * OWN * CONSUMERS * 128 * 8 <= STAGES * STAGE_BYTES, "the stages take the sums of others");

// A slice of y: its first element, its first filter, and elements from a pixel to the next.
struct Output {
    Element *to;
    int first, pitch;
};

struct Layer {
    TensorMap x, w, residual_boxes;
    Output y[MOST_OUTPUTS];
    const Element *residual;
    const float *bias;           // of filters up to a multiple of BN; of INT8 each two are followed by their sums' scales
    float residual_scale, step;  // of INT8: in steps of y; one of these
    int residual_pitch;
    int outputs;
    int single;                  // y is float32; where blocks share a depth
    int relu, swish;
    float most;                  // of INT8, steps of y
    int pixels, filters, channels;
    int flat;                    // x is a matrix, pixels × channels
    int image, width;            // pixels of an image of y, of one of its rows
    int top, left, down, right;  // where the first window starts in x, and how far the next one is
    int rows, columns, dilation_h, dilation_w;
};

__device__ __forceinline__ const Output &output_of(const Layer &g, int filter) {
    int i = 0;
    while (i + 1 < g.outputs && filter >= g.y[i + 1].first) i++;
    return g.y[i];
}

__device__ __forceinline__ float2 activated(float2 v, const Layer &g) {
    return {activated(v.x, g.relu, g.swish, g.most), activated(v.y, g.relu, g.swish, g.most)};
}

// The first of the two filters whose results a thread has of eight columns. INT8's filters lie in an order of their own,
// so that it has four neighbours of sixteen columns: a word of y, as of the residual.
__device__ __forceinline__ int filter_of(int eight, int t) {
    return INT8 ? eight / 2 * 16 + t * 4 + eight % 2 * 2 : eight * 8 + t * 2;
}

__device__ __forceinline__ float2 unpacked(half2 v, float) { return __half22float2(v); }
__device__ __forceinline__ float2 unpacked(char2 v, float scale) { return {v.x * scale, v.y * scale}; }

// By what the 16-byte chunks of a line are exchanged.
__device__ __forceinline__ int swizzled(int line) {
    return line / (LINE_BYTES / LINE) % (LINE / 16);
}

// An operand in lines of BK.
__device__ __forceinline__ unsigned long long in_lines(unsigned address) {
    constexpr unsigned long long SWIZZLE = LINE == 128 ? 1 : LINE == 64 ? 2 : 3;
    return (address & 0x3FFFF) >> 4 | 1ull << 16 | (unsigned long long)(8 * LINE >> 4) << 32 | SWIZZLE << 62;
}

// Two sums to and from shared memory of blocks of the cluster.
#define SEND_AND_RECEIVE(TYPE, LETTER)                                                                     \
    __device__ __forceinline__ void send(unsigned to, unsigned rank, TYPE a, TYPE b) {                      \
        asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"                       \
                     "st.shared::cluster.v2.b32 [there], {%2, %3};\n}" ::"r"(to),                           \
                     "r"(rank), LETTER(a), LETTER(b)                                                       \
                     : "memory");                                                                          \
    }                                                                                                      \
    __device__ __forceinline__ void receive(unsigned from, TYPE (&v)[2]) {                                  \
        asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=" LETTER(v[0]), "=" LETTER(v[1]) : "r"(from)     \
                     : "memory");                                                                          \
    }
SEND_AND_RECEIVE(float, "f")
SEND_AND_RECEIVE(int, "r")

#if SPLIT > 1
#define IN_CLUSTERS __cluster_dims__(SPLIT, 1, 1)
#else
#define IN_CLUSTERS  // a launch in clusters of one block would take longer
#endif

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, BLOCKS) cbr_wgmma(const __grid_constant__ Layer g) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    let_next_kernel_start();
    const unsigned stages = (shared_address(memory) + 1023) / 1024 * 1024;  // the swizzle repeats after 1024 bytes
    const unsigned full_at = shared_address(full), empty_at = shared_address(empty);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int split = SPLIT > 1 ? blockIdx.x % SPLIT : 0, first = blockIdx.x / SPLIT, clusters = gridDim.x / SPLIT;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(full_at + 8 * stage, 1);
            barrier_init(empty_at + 8 * stage, CONSUMERS * 4);
        }
        fence_barrier_init();
    }
    if (threadIdx.x == CONSUMERS * 128) {
        prefetch_map(g.x);
        prefetch_map(g.w);
    }
    __syncthreads();

    const int wide = (g.filters + BN - 1) / BN, tiles = (g.pixels + BM - 1) / BM * wide, taps = g.rows * g.columns;
    const int steps = taps * ((g.channels + BK - 1) / BK);  // of all channels' chunks each tap
    const int begin = steps * split / SPLIT, end = steps * (split + 1) / SPLIT;
    int stage = 0, parity = 0;  // parity: of the phase that the stage's barriers are in
    auto advance = [&]() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    };

    if (warp == CONSUMERS * 4) {
        auto load_filters = [&](int at, int step, int filter) {
            const int chunk = step / taps;
            barrier_expect(full_at + 8 * at, STAGE_BYTES);
            load_box(stages + at * STAGE_BYTES + X_BYTES, g.w, chunk * BK, step - chunk * taps, filter, full_at + 8 * at);
        };
        int ahead = min(STAGES, end - begin);  // of the first tile's steps: filters are there before x is
        for (int tile = first; tile < tiles && lane == 0; tile += clusters) {
            const int pixel = tile / wide * BM, filter = tile % wide * BN;
            if (tile == first) {
                for (int i = 0; i < ahead; i++) load_filters(i, begin + i, filter);
                wait_for_kernel_before();
            }
            const int n = pixel / g.image, in_image = pixel - n * g.image;
            const int p = in_image / g.width, q = in_image - p * g.width;
            const int row = g.top + p * g.down, column = g.left + q * g.right;
            int chunk = begin / taps, tap = begin - chunk * taps, r = tap / g.columns, s = tap - r * g.columns;
            for (int step = begin; step < end; step++) {
                const unsigned to = stages + stage * STAGE_BYTES, barrier = full_at + 8 * stage;
                if (ahead > 0) {
                    ahead--;
                } else {
                    barrier_wait(empty_at + 8 * stage, parity ^ 1);
                    load_filters(stage, step, filter);
                }
                if (g.flat) {
                    load_box(to, g.x, chunk * BK, pixel, barrier);
                } else {
                    load_pixels(to, g.x, chunk * BK, column, row, n, s * g.dilation_w, r * g.dilation_h, barrier);
                }
                advance();
                if (++s == g.columns) {
                    s = 0;
                    if (++r == g.rows) r = 0, chunk++;
                }
            }
            for (int panel = 0; panel < BN / BK && SPLIT == 1 && g.residual; panel++) {
                barrier_wait(empty_at + 8 * stage, parity ^ 1);
                barrier_expect(full_at + 8 * stage, X_BYTES);
                load_box(stages + stage * STAGE_BYTES, g.residual_boxes, filter + panel * BK, pixel, full_at + 8 * stage);
                advance();
            }
        }
        __syncwarp();
        if (SPLIT > 1) {
            cluster_sync();
            cluster_sync();
        }
        return;
    }

    const int consumer = warp / 4, t = lane % 4;
    const unsigned box = stages + STAGES * STAGE_BYTES + warp * BOX_BYTES;
    const unsigned long long first_x = in_lines(stages + consumer * ROWS * 64 * LINE);
    const unsigned long long first_w = in_lines(stages + X_BYTES);
    auto release = [&](int done) {
        if (lane == 0) barrier_arrive(empty_at + 8 * done);
    };
    wait_for_kernel_before();
    for (int tile = first; tile < tiles; tile += clusters) {
        const int filter = tile % wide * BN;
        const int pixel = tile / wide * BM + consumer * ROWS * 64 + warp % 4 * 16 + lane / 4;  // and 8 further
        Pair own[OWN] = {};  // where blocks share a depth, of the residual: for the sums that this one adds up
#pragma unroll
        for (int i = 0; i < OWN && SPLIT > 1 && g.residual; i++) {
            const int pair = split * OWN + i, j = pair % (SUMS / 2) / 2, k = filter + filter_of(j, t);
            const int at = pixel + pair / (SUMS / 2) * 64 + pair % 2 * 8;
            if (at < g.pixels && k < g.filters) {
                own[i] = *reinterpret_cast<const Pair *>(g.residual + size_t(at) * g.residual_pitch + k);
            }
        }
#if INT8
        const float4 *const lines = reinterpret_cast<const float4 *>(g.bias) + filter / 2;
        for (int i = lane; i < BN / 2 && SPLIT == 1; i += 32) {  // results come here once these have been used
            const float4 v = lines[i];
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(box + i * 16), "f"(v.x), "f"(v.y), "f"(v.z),
                         "f"(v.w)
                         : "memory");
        }
#endif
        Sum sum[ROWS][SUMS] = {};
#pragma unroll
        for (int j = 0; j < BN / 8 && !INT8; j++) {
            float2 bias = {};
            if (SPLIT == 1 || split == 0) bias = *reinterpret_cast<const float2 *>(g.bias + filter + j * 8 + t * 2);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                sum[i][j * 4] = sum[i][j * 4 + 2] = bias.x;
                sum[i][j * 4 + 1] = sum[i][j * 4 + 3] = bias.y;
            }
        }
        int before = 0;
        for (int step = begin; step < end; step++) {
            const unsigned long long x = moved(first_x, stage * STAGE_BYTES), w = moved(first_w, stage * STAGE_BYTES);
            barrier_wait(full_at + 8 * stage, parity);
            wgmma_fence();
#pragma unroll
            for (int depth = 0; depth < LINE; depth += 32) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    wgmma<K_MAJOR, K_MAJOR>(sum[i], moved(x, i * 64 * LINE + depth), moved(w, depth), 1);
                }
            }
            wgmma_commit();
            wgmma_wait<1>();  // for the stage before
            if (step > begin) release(before);
            before = stage;
            advance();
        }
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            settle(sum[i]);
        }
        if (begin < end) release(before);
#if INT8
        float real[ROWS][SUMS];  // in steps of y
        auto scaled = [&]() {
#pragma unroll
            for (int j = 0; j < BN / 8; j++) {
                float4 line;  // of two filters: bias, and scale
                if (SPLIT == 1) {
                    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                                 : "=f"(line.x), "=f"(line.y), "=f"(line.z), "=f"(line.w)
                                 : "r"(box + (j * 4 + t) * 16)
                                 : "memory");
                } else {
                    line = lines[j * 4 + t];
                }
#pragma unroll
                for (int i = 0; i < ROWS * 2; i++) {
                    const int at = j * 4 + i % 2 * 2;
                    real[i / 2][at] = fmaf(sum[i / 2][at], line.z, line.x);
                    real[i / 2][at + 1] = fmaf(sum[i / 2][at + 1], line.w, line.y);
                }
            }
        };
        const float least_step = g.relu ? 0 : -127;
        auto in_y = [&](float v) { return in_steps(SILU ? swish(v * g.step) / g.step : v, least_step, g.most); };
        if (SPLIT == 1) {
            __syncwarp();
            scaled();
            __syncwarp();
        }
#else
        auto &real = sum;
#endif
#pragma unroll
        for (int panel = 0; panel < BN / BK && SPLIT == 1; panel++) {
            if (!g.residual) break;
            barrier_wait(full_at + 8 * stage, parity);
#pragma unroll
            for (int i = 0; i < ROWS * LINE / 32; i++) {
                const int row = i / (LINE / 32), j = i % (LINE / 32) * 2;
                const int line = (consumer * ROWS + row) * 64 + warp % 4 * 16 + lane % 16;
                const unsigned from = stages + stage * STAGE_BYTES + line * LINE + (j + lane / 16 ^ swizzled(line)) * 16;
                unsigned word[4];
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                             : "r"(from)
                             : "memory");
#pragma unroll
                for (int part = 0; part < 4; part++) {
                    const Pair *const pair = reinterpret_cast<const Pair *>(&word[part]);
                    constexpr int EIGHTS = EACH / 8;
#pragma unroll
                    for (int k = 0; k < EIGHTS; k++) {
                        const float2 r = unpacked(pair[k], g.residual_scale);
                        const int eight = panel * (BK / 8) + (j + part / 2) * EIGHTS + k;
                        real[row][eight * 4 + part % 2 * 2] += r.x;
                        real[row][eight * 4 + part % 2 * 2 + 1] += r.y;
                    }
                }
            }
            __syncwarp();
            release(stage);
            advance();
        }

        if constexpr (SPLIT == 1) {
            const int in_box = lane / VECTORS, column = lane % VECTORS * EACH;  // row and first channel of the lane's 16 bytes
#pragma unroll
            for (int i = 0; i < ROWS * (BN / WIDTH); i++) {
                const int row = i / (BN / WIDTH), panel = i % (BN / WIDTH), k = filter + panel * WIDTH + column;
#if INT8
#pragma unroll
                for (int j = 0; j < WIDTH / 8; j += 4) {
                    unsigned v[4];
#pragma unroll
                    for (int part = 0; part < 4; part++) {
                        const float *s = &real[row][panel * (WIDTH / 2) + (j + part / 2 * 2) * 4 + part % 2 * 2];
                        v[part] = low_bytes(in_y(s[0]), in_y(s[1]), in_y(s[4]), in_y(s[5]));
                    }
                    auto as = [&](int i) { return *reinterpret_cast<const half2 *>(&v[i]); };
                    keep_16x16(box, 0, j * 4, as(0), as(1), as(2), as(3));
                }
#else
                const half2 least = least_of(g.relu), most = __float2half2_rn(g.most);
#pragma unroll
                for (int j = 0; j < WIDTH / 8; j += 2) {
                    half2 v[4];
#pragma unroll
                    for (int part = 0; part < 4; part++) {
                        const float *s = &sum[row][panel * (WIDTH / 2) + j * 4 + part * 2];
                        v[part] = activated<SILU>(s[0], s[1], least, most);
                    }
                    keep_16x16(box, 0, j * 8, v[0], v[1], v[2], v[3]);
                }
#endif
                __syncwarp();
                const Output &y = output_of(g, k);
                const int first = pixel - lane / 4 + row * 64 + in_box;
                Element *to = y.to + size_t(first) * y.pitch + k - y.first;
#pragma unroll
                for (int down = 0; down < 16; down += 32 / VECTORS) {
                    const int line = in_box + down;
                    uint4 v;
                    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                                 : "r"(box + line * LINE_BYTES + (lane % VECTORS ^ line % 8) * 16)
                                 : "memory");
                    if (first + down < g.pixels && k < g.filters) *reinterpret_cast<uint4 *>(to) = v;
                    to += y.pitch * (32 / VECTORS);
                }
                __syncwarp();
            }
        } else {  // once, as each cluster has one tile: the sums of others come to the stages, which all have read
            auto place = [&](int sender, int i) {
                return stages + (((sender * OWN + i) * CONSUMERS * 128) + threadIdx.x) * 8;
            };
            cluster_sync();
#pragma unroll
            for (int i = 0; i < PAIRS; i++) {
                const int owner = i / OWN;
                if (owner != split) {
                    const Sum *s = &sum[i / (SUMS / 2)][i % (SUMS / 2) * 2];
                    send(place((split - owner - 1 + SPLIT) % SPLIT, i % OWN), owner, s[0], s[1]);
                }
            }
            cluster_sync();
#pragma unroll
            for (int i = 0; i < PAIRS; i++) {
#pragma unroll
                for (int sender = 0; sender < SPLIT - 1 && i / OWN == split; sender++) {
                    Sum v[2];
                    receive(place(sender, i % OWN), v);
                    Sum *s = &sum[i / (SUMS / 2)][i % (SUMS / 2) * 2];
                    s[0] += v[0], s[1] += v[1];
                }
            }
#if INT8
            scaled();
#endif
#pragma unroll
            for (int i = 0; i < PAIRS; i++) {
                const int row = i / (SUMS / 2), j = i % (SUMS / 2) / 2;
                const int at = pixel + row * 64 + i % 2 * 8, k = filter + filter_of(j, t);
                if (i / OWN != split || at >= g.pixels || k >= g.filters) continue;
                const float2 r = unpacked(own[i % OWN], g.residual_scale);
                const float *const found = &real[row][j * 4 + i % 2 * 2];
                const float2 v = {found[0] + r.x, found[1] + r.y};
                const Output &y = output_of(g, k);
                const size_t to = size_t(at) * y.pitch + k - y.first;
#if INT8
                *reinterpret_cast<char2 *>(y.to + to) = make_char2(in_y(v.x), in_y(v.y));
#else
                if (g.single) {
                    *reinterpret_cast<float2 *>(reinterpret_cast<float *>(y.to) + to) = activated(v, g);
                } else {
                    *reinterpret_cast<half2 *>(y.to + to) = __float22half2_rn(activated(v, g));
                }
#endif
            }
        }
    }
}
