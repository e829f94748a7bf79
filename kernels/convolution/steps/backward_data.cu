// The gradient of x as an implicit matrix product, channels × depth by depth × pixels of x. NCHW, float32, any
// parameters. An element of x gathers what it gave to: depth runs through the filters k and their taps r, s, and the
// output there is at p = (h + padding - r * dilation) / stride, if that is a whole number within y. So each element of
// dx is written once, by one thread, in one order: no atomics, and equal results in every run.
// Expected: the rate of step 3 at stride 1. At stride 2 three taps of four fall between outputs, and their zeros are
// multiplied like the others: a quarter of the rate.
//
// UNIT_STRIDE: both strides are 1, so that nothing is divided.
#include "index.cuh"
#include "tile_product.cuh"

// w as channels × (k, r, s): KCRS with k and c exchanged.
struct FiltersByChannel {
    const float *of_group;
    int first_channel;
    const Sizes &g;

    __device__ __forceinline__ FiltersByChannel(const float *w, int group, int first_channel, const Sizes &g)
        : of_group(w + group * g.group_k * g.depth), first_channel(first_channel), g(g) {}

    __device__ __forceinline__ void go_to(int depth) {
        const int taps = g.r * g.s, k = depth / taps;
        at_tap = k * g.depth + (depth - k * taps);
    }

    __device__ __forceinline__ float at(int row) const {
        const int c = first_channel + row;
        return c < g.group_c ? of_group[at_tap + c * g.r * g.s] : 0;
    }

  private:
    int at_tap;
};

// At pixel m of x and depth (k, r, s) the gradient of the output that filter k computed with its tap on that pixel.
template <bool UNIT_STRIDE>
struct Gradients {
    const float *filters;  // of the group, in the pixel's image
    int h, w;              // of the pixel, in the padded image
    bool inside;
    Tap tap{0, 0, 0};  // its c counts filters
    const Sizes &g;

    __device__ __forceinline__ Gradients(const float *dy, int group, int m, const Sizes &g) : g(g) {
        const int row = m / g.w, n = row / g.h;
        filters = dy + (n * g.k + group * g.group_k) * g.p * g.q;
        h = row - n * g.h + g.pad_h;
        w = m - row * g.w + g.pad_w;
        inside = m < g.n * g.h * g.w;
    }

    __device__ __forceinline__ float next(bool wanted) {
        const int down = h - tap.r * g.dilation_h, right = w - tap.s * g.dilation_w;
        int p = down, q = right;
        if (!UNIT_STRIDE) {
            p /= g.stride_h, q /= g.stride_w;
            wanted = wanted & (p * g.stride_h == down) & (q * g.stride_w == right);
        }
        wanted = wanted & inside & (unsigned(p) < unsigned(g.p)) & (unsigned(q) < unsigned(g.q));
        const float value = wanted ? filters[(tap.c * g.p + p) * g.q + q] : 0;
        advance(tap, g);
        return value;
    }
};

template <bool UNIT_STRIDE>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    conv_backward_data(const float *__restrict__ dy, const float *__restrict__ w, float *__restrict__ dx, Sizes g) {
    const int pixels = g.n * g.h * g.w, pixel_tiles = (pixels - 1) / BN + 1, channel_tiles = (g.group_c - 1) / BM + 1;
    const int first_channel = blockIdx.x % channel_tiles * BM;
    const int first_pixel = blockIdx.x / channel_tiles % pixel_tiles * BN;
    const int group = blockIdx.x / channel_tiles / pixel_tiles;
    const FiltersByChannel filters(w, group, first_channel, g);
    const Gradients<UNIT_STRIDE> gradients(dy, group, first_pixel + threadIdx.x, g);
    float sum[TM][TN] = {};
    multiply_tiles(filters, gradients, 0, g.group_k * g.r * g.s, sum);
#pragma unroll
    for (int j = 0; j < TN; j++) {
        const int m = first_pixel + tile_column() + j * COLUMN_STEP;
        if (m >= pixels) {
            break;
        }
        const int n = m / (g.h * g.w);
        float *const pixel = dx + (n * g.c + group * g.group_c) * g.h * g.w + (m - n * g.h * g.w);
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const int c = first_channel + tile_row() + i;
            if (c < g.group_c) {
                pixel[c * g.h * g.w] = sum[i][j];
            }
        }
    }
}
