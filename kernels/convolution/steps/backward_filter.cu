// The gradient of w as an implicit matrix product, filters × pixels by pixels × taps. NCHW, float32, any parameters.
// The result is small and the depth large, all pixels of all images of y: one block for each tile of dw would leave
// most of the GPU idle. So the depth is split; blocks write partial sums, which conv_backward_filter_sum adds in a
// fixed order: no atomics, and equal results in every run.
// Expected: less than step 3, since neighbours in a row of the right tile are taps of x, whose planes lie H × W apart.
#include "index.cuh"
#include "tile_product.cuh"

// dy as filters × pixels.
struct GradientRows {
    const float *dy;
    int first_filter, group;
    const Sizes &g;

    __device__ __forceinline__ GradientRows(const float *dy, int group, int first_filter, const Sizes &g)
        : dy(dy), first_filter(first_filter), group(group), g(g) {}

    __device__ __forceinline__ void go_to(int m) {
        const int n = m / (g.p * g.q);
        at_pixel = (n * g.k + group * g.group_k) * g.p * g.q + (m - n * g.p * g.q);
    }

    __device__ __forceinline__ float at(int row) const {
        const int filter = first_filter + row;
        return filter < g.group_k ? dy[at_pixel + filter * g.p * g.q] : 0;
    }

  private:
    int at_pixel;
};

// At tap (c, r, s) and pixel m of y the element of x that meets there; step 3's Windows, walked the other way.
struct WindowsByTap {
    const float *x;
    int c;  // of x
    int down, right;
    bool inside;
    Pixel at;
    const Sizes &g;

    __device__ __forceinline__ WindowsByTap(const float *x, int group, int k, int first_pixel, const Sizes &g)
        : x(x), inside(k < g.depth), at(pixel_of(first_pixel, g)), g(g) {
        const Tap tap = tap_of(k, g);
        c = group * g.group_c + tap.c;
        down = tap.r * g.dilation_h - g.pad_h;
        right = tap.s * g.dilation_w - g.pad_w;
    }

    __device__ __forceinline__ float next(bool wanted) {
        const int h = at.p * g.stride_h + down, w = at.q * g.stride_w + right;
        wanted = wanted & inside & (unsigned(h) < unsigned(g.h)) & (unsigned(w) < unsigned(g.w));
        const float value = wanted ? x[((at.n * g.c + c) * g.h + h) * g.w + w] : 0;
        if (++at.q == g.q) {
            at.q = 0;
            if (++at.p == g.p) {
                at.p = 0;
                at.n++;
            }
        }
        return value;
    }
};

// `partial`: splits × k × depth; dw itself where the depth is not split. Blocks along y: splits of `length` pixels.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv_backward_filter(const float *__restrict__ x, const float *__restrict__ dy, float *__restrict__ partial,
                         Sizes g, int length) {
    const int filter_tiles = (g.group_k - 1) / BM + 1, tap_tiles = (g.depth - 1) / BN + 1;
    const int first_filter = blockIdx.x % filter_tiles * BM, first_tap = blockIdx.x / filter_tiles % tap_tiles * BN;
    const int group = blockIdx.x / filter_tiles / tap_tiles;
    const int begin = blockIdx.y * length, end = min(begin + length, g.n * g.p * g.q);
    const GradientRows gradients(dy, group, first_filter, g);
    const WindowsByTap windows(x, group, first_tap + threadIdx.x, begin, g);
    float sum[TM][TN] = {};
    multiply_tiles(gradients, windows, begin, end, sum);
    float *const to = partial + size_t(blockIdx.y) * g.k * g.depth;
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j++) {
            const int filter = first_filter + tile_row() + i, tap = first_tap + tile_column() + j * COLUMN_STEP;
            if (filter < g.group_k && tap < g.depth) {
                to[(group * g.group_k + filter) * g.depth + tap] = sum[i][j];
            }
        }
    }
}

// dw = the sum of the partial sums, a thread for each element.
extern "C" __global__ void conv_backward_filter_sum(const float *__restrict__ partial, float *__restrict__ dw,
                                                    int count, int splits) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    float sum = 0;
    for (int split = 0; split < splits; split++) {
        sum += partial[size_t(split) * count + i];
    }
    dw[i] = sum;
}
