// The backward passes on the tensor cores by mma.sync: float16 in NHWC, sums float32. Any parameters.
//
// Gradient of x: pixels of x × depth by depth × channels, depth = (r, s, k). An element of x gathers from the outputs
// that read it, at p = (h + padding - r * dilation) / stride where that is a whole number within y.
// Gradient of w: filters × pixels of y by pixels × taps (r, s, c). Both operands have neighbours of their rows side by
// side, not of the depth, so ldmatrix transposes both. The depth is split, as in backward_filter.cu, and
// conv_mma_backward_filter_sum adds the partial sums in a fixed order and rounds them once.
// Expected: the rate of step 4 at stride 1; at stride 2 a quarter of it for the gradient of x, since three taps of four
// fall between outputs.
//
// Template parameters as in 4_mma_nhwc.cu; VECTORS asks for multiples of 8 of both channels and filters of a group.
// UNIT_STRIDE: both strides are 1, so that nothing is divided.
#include "mma_taps.cuh"
#include "mma_tiles.cuh"
#include "sizes.cuh"

// -- gradient of x ----------------------------------------------------------------------------------------------------

// The left operand: at pixel m of x and depth (r, s, k) the gradient of the output that filter k computed with its tap
// on that pixel.
template <class Shared, bool UNIT_STRIDE>
struct Gradients {
    const half *dy;
    const Sizes &g;
    int h[Shared::COPIES], w[Shared::COPIES], start[Shared::COPIES];  // in the padded image; the image's first gradient
    Tap tap, each;
    int down, right;

    __device__ __forceinline__ Gradients(const half *dy, int group, int first_pixel, const Sizes &g)
        : dy(dy), g(g), tap(Shared::chunk() * 8, g.group_k, g) {
#pragma unroll
        for (int i = 0; i < Shared::COPIES; i++) {
            const int m = first_pixel + Shared::line() + i * Shared::STEP, row = m / g.w, n = row / g.h;
            h[i] = m < g.n * g.h * g.w ? row - n * g.h + g.pad_h : NOWHERE;
            w[i] = m - row * g.w + g.pad_w;
            start[i] = n * g.p * g.q * g.k + group * g.group_k;
        }
    }

    __device__ __forceinline__ void element(int j) {
        each = tap;
        if (j > 0) {
            each.advance(j, g.group_k, g);
        }
        down = each.r * g.dilation_h;
        right = each.s * g.dilation_w;
    }

    __device__ __forceinline__ const half *at(int i) const {
        int p = h[i] - down, q = w[i] - right;
        bool inside = each.r < g.r;
        if (!UNIT_STRIDE) {
            p /= g.stride_h, q /= g.stride_w;
            inside = inside && p * g.stride_h == h[i] - down && q * g.stride_w == w[i] - right;
        }
        inside = inside && unsigned(p) < unsigned(g.p) && unsigned(q) < unsigned(g.q);
        return inside ? dy + start[i] + (p * g.q + q) * g.k + each.channel : nullptr;
    }

    __device__ __forceinline__ void advance() { tap.advance(BK, g.group_k, g); }
};

// The right operand: at depth (r, s, k) and channel c the element of KRSC; channels lie side by side.
template <class Shared>
struct FiltersByChannel {
    const half *of_group;
    int c, channel = 0, depth;
    const Sizes &g;

    __device__ __forceinline__ FiltersByChannel(const half *w, int group, int first_channel, const Sizes &g)
        : of_group(w + group * g.group_k * g.depth),
          c(first_channel + Shared::chunk() * 8),
          depth(Shared::line()),
          g(g) {}

    __device__ __forceinline__ void element(int j) { channel = c + j; }

    __device__ __forceinline__ const half *at(int i) const {
        const int here = depth + i * Shared::STEP, tap = here / g.group_k, k = here - tap * g.group_k;
        const bool inside = channel < g.group_c && tap < g.r * g.s;
        return inside ? of_group + (k * g.r * g.s + tap) * g.group_c + channel : nullptr;
    }

    __device__ __forceinline__ void advance() { depth += BK; }
};

template <int BM, int BN, int WM, int WN, int STAGES, int BLOCKS, bool VECTORS, bool UNIT_STRIDE>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, BLOCKS)
    conv_mma_backward_data(const half *__restrict__ dy, const half *__restrict__ w, half *__restrict__ dx, Sizes g) {
    using S = Shape<BM, BN, WM, WN, STAGES>;
    using PixelShare = Share<BM, BK / 8, S::THREADS>;  // rows by depth
    using DepthShare = Share<BK, BN / 8, S::THREADS>;  // depth by rows
    extern __shared__ __align__(128) uint4 memory[];

    const int pixels = g.n * g.h * g.w, pixel_tiles = (pixels - 1) / BM + 1, channel_tiles = (g.group_c - 1) / BN + 1;
    const int first_channel = blockIdx.x % channel_tiles * BN;
    const int first_pixel = blockIdx.x / channel_tiles % pixel_tiles * BM;
    const int group = blockIdx.x / channel_tiles / pixel_tiles;

    Gradients<PixelShare, UNIT_STRIDE> gradients(dy, group, first_pixel, g);
    FiltersByChannel<DepthShare> filters(w, group, first_channel, g);
    float sum[WM / 16][WN / 8][4] = {};
    multiply_tiles<S, false, true>(
        unsigned(__cvta_generic_to_shared(memory)), (g.r * g.s * g.group_k - 1) / BK + 1,
        [&](unsigned stage) {
            bring<PixelShare, BK / 8, VECTORS>(stage, dy, gradients);
            bring<DepthShare, BN / 8, VECTORS>(stage + S::LEFT_BYTES, dy, filters);
        },
        sum);
    write_pixels<S>(sum, memory, dx + size_t(first_pixel) * g.c + group * g.group_c + first_channel, g.c,
                    pixels - first_pixel, min(BN, g.group_c - first_channel), nullptr, false);
}

// -- gradient of w ----------------------------------------------------------------------------------------------------

// The left operand: at filter k and pixel m of y its gradient; filters lie side by side.
template <class Shared>
struct GradientsByFilter {
    const half *of_group;
    int k, filter = 0, m, end;
    const Sizes &g;

    __device__ __forceinline__ GradientsByFilter(const half *dy, int group, int first_filter, int begin, int end,
                                                 const Sizes &g)
        : of_group(dy + group * g.group_k),
          k(first_filter + Shared::chunk() * 8),
          m(begin + Shared::line()),
          end(end),
          g(g) {}

    __device__ __forceinline__ void element(int j) { filter = k + j; }

    __device__ __forceinline__ const half *at(int i) const {
        const int here = m + i * Shared::STEP;
        return filter < g.group_k && here < end ? of_group + here * g.k + filter : nullptr;
    }

    __device__ __forceinline__ void advance() { m += BK; }
};

// The right operand: at pixel m of y and tap (r, s, c) the element of x that meets there; a thread keeps to one tap.
template <class Shared>
struct WindowsByTap {
    const half *of_group;
    const Sizes &g;
    int m, end;
    Tap tap, each;

    __device__ __forceinline__ WindowsByTap(const half *x, int group, int first_tap, int begin, int end, const Sizes &g)
        : of_group(x + group * g.group_c),
          g(g),
          m(begin + Shared::line()),
          end(end),
          tap(first_tap + Shared::chunk() * 8, g.group_c, g) {}

    __device__ __forceinline__ void element(int j) {
        each = tap;
        if (j > 0) {
            each.advance(j, g.group_c, g);
        }
    }

    __device__ __forceinline__ const half *at(int i) const {
        const int here = m + i * Shared::STEP, row = here / g.q, n = row / g.p;
        const int h = (row - n * g.p) * g.stride_h + each.r * g.dilation_h - g.pad_h;
        const int w = (here - row * g.q) * g.stride_w + each.s * g.dilation_w - g.pad_w;
        const bool inside = here < end && each.r < g.r && unsigned(h) < unsigned(g.h) && unsigned(w) < unsigned(g.w);
        return inside ? of_group + ((n * g.h + h) * g.w + w) * g.c + each.channel : nullptr;
    }

    __device__ __forceinline__ void advance() { m += BK; }
};

// `partial`: splits × k × depth, float32. Blocks along y: splits of `length` pixels.
template <int BM, int BN, int WM, int WN, int STAGES, int BLOCKS, bool VECTORS>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, BLOCKS)
    conv_mma_backward_filter(const half *__restrict__ x, const half *__restrict__ dy, float *__restrict__ partial,
                             Sizes g, int length) {
    using S = Shape<BM, BN, WM, WN, STAGES>;
    using FilterShare = Share<BK, BM / 8, S::THREADS>;  // both tiles are depth by rows
    using TapShare = Share<BK, BN / 8, S::THREADS>;
    extern __shared__ __align__(128) uint4 memory[];

    const int filter_tiles = (g.group_k - 1) / BM + 1, tap_tiles = (g.depth - 1) / BN + 1;
    const int first_filter = blockIdx.x % filter_tiles * BM, first_tap = blockIdx.x / filter_tiles % tap_tiles * BN;
    const int group = blockIdx.x / filter_tiles / tap_tiles;
    const int begin = blockIdx.y * length, end = min(begin + length, g.n * g.p * g.q);

    GradientsByFilter<FilterShare> gradients(dy, group, first_filter, begin, end, g);
    WindowsByTap<TapShare> windows(x, group, first_tap, begin, end, g);
    float sum[WM / 16][WN / 8][4] = {};
    multiply_tiles<S, true, true>(
        unsigned(__cvta_generic_to_shared(memory)), (end - begin - 1) / BK + 1,
        [&](unsigned stage) {
            bring<FilterShare, BM / 8, VECTORS>(stage, x, gradients);
            bring<TapShare, BN / 8, VECTORS>(stage + S::LEFT_BYTES, x, windows);
        },
        sum);

    float *const to = partial + (size_t(blockIdx.y) * g.k + group * g.group_k) * g.depth;
#pragma unroll
    for (int r = 0; r < WM / 16; r++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int filter = first_filter + row_of<S>(r, h);
#pragma unroll
            for (int s = 0; s < WN / 8; s++) {
                const int tap = first_tap + column_of<S>(s);
                if (filter < g.group_k && tap < g.depth) {
                    to[size_t(filter) * g.depth + tap] = sum[r][s][2 * h];
                }
                if (filter < g.group_k && tap + 1 < g.depth) {
                    to[size_t(filter) * g.depth + tap + 1] = sum[r][s][2 * h + 1];
                }
            }
        }
    }
}

// dw = the sum of the partial sums, a thread for each element.
extern "C" __global__ void conv_mma_backward_filter_sum(const float *__restrict__ partial, half *__restrict__ dw,
                                                        int count, int splits) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    float sum = 0;
    for (int split = 0; split < splits; split++) {
        sum += partial[size_t(split) * count + i];
    }
    dw[i] = __float2half_rn(sum);
}
