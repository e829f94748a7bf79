// 4. Implicit GEMM on the tensor cores: float16 in NHWC, sums float32. Any padding, stride, dilation and groups.
// Changed: pixels × depth by depth × filters with mma.sync, as lab 05's step 4 does it (mma_tiles.cuh). The depth runs
// through (r, s, c) now: the channels of a pixel lie side by side in NHWC, so one cp.async brings eight of them, and
// writes zeros where the window is in the padding. In NCHW eight neighbours along the depth would be eight rows or
// planes apart.
// Expected: an index for eight products of a pixel, where step 3 finds one for each. The limit is mma.sync's rate as in
// lab 05, but for layers of few channels, which take longer to read x and write y.
// Reached: 31 µs for conv2_x's 3 × 3, 31 µs for conv4_x's: 235 and 241 TFLOP/s, 0.86 and 0.64 of cuDNN's fastest plan
// (NVIDIA H100 80GB HBM3, 2026-11-27).
// Tiles as large as lab 05's would leave multiprocessors idle, or columns: conv2_x has 64 filters, and conv4_x as many
// tiles of 128 × 128 as three quarters of an H100's multiprocessors. Smaller ones read more of shared memory for each
// product.
//
// BM, BN: pixels and filters that a block computes. WM, WN: of a warp. STAGES: pairs of tiles in shared memory. BLOCKS:
// of those that a multiprocessor holds at a time, at least. VECTORS: channels of a group are a multiple of 8, and x and
// w start at multiples of 16 bytes; without, each element is read by itself.
#include "mma_taps.cuh"
#include "mma_tiles.cuh"
#include "sizes.cuh"

// The left operand: at pixel m of y and depth (r, s, c) the element of x that w meets there.
template <class Shared>
struct Windows {
    const half *x;
    const Sizes &g;
    int h0[Shared::COPIES], w0[Shared::COPIES];  // where windows begin
    unsigned start[Shared::COPIES];              // the element there: with much padding beyond 32 bits, where it wraps
    Tap tap, each;                               // of the chunk, and of `element`
    int down, right;                             // from the window's beginning to `each`
    unsigned further;                            // likewise, in elements: added to `start` it is within 32 bits again

    __device__ __forceinline__ Windows(const half *x, int group, int first_pixel, const Sizes &g)
        : x(x), g(g), tap(Shared::chunk() * 8, g.group_c, g) {
#pragma unroll
        for (int i = 0; i < Shared::COPIES; i++) {
            const int m = first_pixel + Shared::line() + i * Shared::STEP, row = m / g.q, n = row / g.p;
            h0[i] = m < g.n * g.p * g.q ? (row - n * g.p) * g.stride_h - g.pad_h : NOWHERE;
            w0[i] = (m - row * g.q) * g.stride_w - g.pad_w;
            start[i] = (unsigned(n * g.h + h0[i]) * g.w + w0[i]) * g.c + group * g.group_c;
        }
    }

    __device__ __forceinline__ void element(int j) {
        each = tap;
        if (j > 0) {
            each.advance(j, g.group_c, g);
        }
        down = each.r < g.r ? each.r * g.dilation_h : NOWHERE;  // behind the last tap there is nothing, either
        right = each.s * g.dilation_w;
        further = (unsigned(each.r * g.dilation_h) * g.w + right) * g.c + each.channel;
    }

    __device__ __forceinline__ const half *at(int i) const {
        const bool inside = unsigned(h0[i] + down) < unsigned(g.h) && unsigned(w0[i] + right) < unsigned(g.w);
        return inside ? x + (start[i] + further) : nullptr;
    }

    __device__ __forceinline__ void advance() { tap.advance(BK, g.group_c, g); }
};

// The right operand: filter k at depth (r, s, c), a row of KRSC.
template <class Shared>
struct Filters {
    const half *row;  // of the first of the thread's filters
    int filters;      // from there on
    int depth, offset = 0;
    const Sizes &g;

    __device__ __forceinline__ Filters(const half *w, int group, int first_filter, const Sizes &g)
        : row(w + (group * g.group_k + first_filter + Shared::line()) * g.depth),
          filters(g.group_k - first_filter - Shared::line()),
          depth(Shared::chunk() * 8),
          g(g) {}

    __device__ __forceinline__ void element(int j) { offset = depth + j; }

    __device__ __forceinline__ const half *at(int i) const {
        const bool inside = i * Shared::STEP < filters && offset < g.depth;
        return inside ? row + i * Shared::STEP * g.depth + offset : nullptr;
    }

    __device__ __forceinline__ void advance() { depth += BK; }
};

template <int BM, int BN, int WM, int WN, int STAGES, int BLOCKS, bool VECTORS>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, BLOCKS)
    conv_mma_nhwc(const half *__restrict__ x, const half *__restrict__ w, const float *__restrict__ bias,
                  half *__restrict__ y, Sizes g, int relu) {
    using S = Shape<BM, BN, WM, WN, STAGES>;
    constexpr int LINE_CHUNKS = BK / 8;  // both tiles are rows by depth
    using PixelShare = Share<BM, LINE_CHUNKS, S::THREADS>;
    using FilterShare = Share<BN, LINE_CHUNKS, S::THREADS>;
    extern __shared__ __align__(128) uint4 memory[];

    // Blocks run through the tiles of filters first: neighbours at work read the same pixels of x.
    const int pixels = g.n * g.p * g.q;
    const int filter_tiles = (g.group_k - 1) / BN + 1, pixel_tiles = (pixels - 1) / BM + 1;
    const int first_filter = blockIdx.x % filter_tiles * BN, first_pixel = blockIdx.x / filter_tiles % pixel_tiles * BM;
    const int group = blockIdx.x / filter_tiles / pixel_tiles;

    Windows<PixelShare> windows(x, group, first_pixel, g);
    Filters<FilterShare> filters(w, group, first_filter, g);
    float sum[WM / 16][WN / 8][4] = {};
    multiply_tiles<S, false, false>(
        unsigned(__cvta_generic_to_shared(memory)), (g.depth - 1) / BK + 1,
        [&](unsigned stage) {
            bring<PixelShare, LINE_CHUNKS, VECTORS>(stage, x, windows);
            bring<FilterShare, LINE_CHUNKS, VECTORS>(stage + S::LEFT_BYTES, x, filters);
        },
        sum);

    const int k = group * g.group_k + first_filter;
    write_pixels<S>(sum, memory, y + size_t(first_pixel) * g.k + k, g.k, pixels - first_pixel,
                    min(BN, g.group_k - first_filter), bias ? bias + k : nullptr, relu);
}
