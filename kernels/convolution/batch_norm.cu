// Batch normalisation of each channel (Ioffe and Szegedy, 2015, arXiv 1502.03167):
//
//     y = γ · (x − mean) / √(variance + ε) + β
//
// batch_norm_sums    Training: sums over images and pixels of d and d², d = x − x₀ and x₀ an element of the channel.
//                    The variance does not change when a number is taken off all elements, and near the mean the
//                    difference of the two sums loses no digits: E[x²] − E[x]² is wrong where the mean is large.
//                    x₀ is the median of three elements. One alone may be an outlier, which costs as many digits: by
//                    Chebyshev's inequality a share of up to 10⁻⁴ lies 100 deviations off, two of three so rarely
//                    (3 · 10⁻⁸, where elements are independent) that it does not matter.
// batch_norm_finish  Adds the blocks' sums, always in the same order; then mean and variance.
// batch_norm_apply   The formula, then ReLU if wanted. Inference is this alone.
//
// Expected: the time of reading x once for the sums, and of reading it and writing y once for the result. After a
// convolution, inference needs neither: the factors go into the filters and the bias (`fold` in batch_norm.py).
//
// In NHWC a thread has VEC neighbouring channels and keeps their factors while it goes from pixel to pixel; in NCHW it
// has VEC neighbouring pixels of a channel.
#include "vectors.cuh"

constexpr int LANES = 8, COPIES = 32;  // threads of a block in NHWC: along the channels, along the pixels
constexpr int BLOCK = LANES * COPIES;
constexpr unsigned ALL = 0xffffffff;

// N images of c channels of `pixels` each.
struct Extent {
    int n, c, pixels;
};

// x₀ of VEC channels from `channel` on: the medians of their first, middle and last elements.
template <bool NHWC, int VEC, typename T>
__device__ __forceinline__ void near_means(float (&to)[VEC], const T *x, const Extent &g, int channel) {
    float of[3][VEC];
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const unsigned last = unsigned(g.n) * g.pixels - 1, i = k == 0 ? 0 : k == 1 ? last / 2 : last;
        const size_t row = NHWC ? i : size_t(i / g.pixels) * g.c + channel;
        unpack(of[k], load<VEC>(x + (NHWC ? row * g.c + channel : row * g.pixels + i % g.pixels)));
    }
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        to[v] = fmaxf(fminf(of[0][v], of[1][v]), fminf(fmaxf(of[0][v], of[1][v]), of[2][v]));
    }
}

// partial[0][block][c]: sums of d; partial[1][block][c]: of d². `blocks`: for each channel, or chunk of channels.
template <typename T, bool NHWC, int VEC>
__global__ void __launch_bounds__(BLOCK) batch_norm_sums(const T *x, float *partial, Extent g, int blocks) {
    constexpr int CHANNELS = NHWC ? LANES * VEC : 1;  // of a block
    const int chunks = (g.c + CHANNELS - 1) / CHANNELS;
    const int first_channel = blockIdx.x % chunks * CHANNELS, block = blockIdx.x / chunks;
    float sum[VEC] = {}, squares[VEC] = {};
    if constexpr (NHWC) {
        const int channel = first_channel + threadIdx.x % LANES * VEC;
        if (channel < g.c) {
            float start[VEC];
            near_means<NHWC>(start, x, g, channel);
            const size_t count = size_t(g.n) * g.pixels;
            for (size_t i = block * COPIES + threadIdx.x / LANES; i < count; i += size_t(blocks) * COPIES) {
                float value[VEC];
                unpack(value, load<VEC>(x + i * g.c + channel));
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    const float d = value[v] - start[v];
                    sum[v] += d, squares[v] += d * d;
                }
            }
        }
    } else {
        float start[1];
        near_means<NHWC>(start, x, g, first_channel);
        const unsigned line = g.pixels / VEC, count = g.n * line;
        for (unsigned i = block * BLOCK + threadIdx.x; i < count; i += blocks * BLOCK) {
            float value[VEC];
            unpack(value, load<VEC>(x + (size_t(i / line) * g.c + first_channel) * g.pixels + i % line * VEC));
#pragma unroll
            for (int v = 0; v < VEC; v++) {
                const float d = value[v] - start[0];
                sum[0] += d, squares[0] += d * d;
            }
        }
    }
    __shared__ __align__(16) float sums[2][BLOCK * (NHWC ? VEC : 1)];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if constexpr (NHWC) {  // [COPIES][CHANNELS]
        constexpr int PART = VEC < 4 ? VEC : 4;
#pragma unroll
        for (int v = 0; v < VEC; v += PART) {
            store<PART>(&sums[0][threadIdx.x * VEC + v], sum + v);
            store<PART>(&sums[1][threadIdx.x * VEC + v], squares + v);
        }
        __syncthreads();
        const int which = threadIdx.x / CHANNELS, channel = threadIdx.x % CHANNELS;
        if (which > 1 || first_channel + channel >= g.c) return;
        float total = 0;
#pragma unroll
        for (int k = 0; k < COPIES; k++) total += sums[which][k * CHANNELS + channel];
        partial[(size_t(which) * blocks + block) * g.c + first_channel + channel] = total;
    } else {  // all of one channel
        sums[0][threadIdx.x] = sum[0], sums[1][threadIdx.x] = squares[0];
        __syncthreads();
        if (warp > 1) return;
        float total = 0;
#pragma unroll
        for (int k = lane; k < BLOCK; k += 32) total += sums[warp][k];
        for (int step = 16; step > 0; step /= 2) total += __shfl_down_sync(ALL, total, step);
        if (lane == 0) partial[(size_t(warp) * blocks + block) * g.c + first_channel] = total;
    }
}

// 32 × 32 threads for 32 channels.
template <typename T, bool NHWC>
__global__ void __launch_bounds__(1024)
    batch_norm_finish(const T *x, const float *partial, float *mean, float *variance, Extent g, int blocks) {
    __shared__ float shared[2][32][33];
    int channel = blockIdx.x * 32 + threadIdx.x;
#pragma unroll
    for (int which = 0; which < 2; which++) {
        float sum = 0;
        if (channel < g.c) {
            for (int block = threadIdx.y; block < blocks; block += 32) {
                sum += partial[(size_t(which) * blocks + block) * g.c + channel];
            }
        }
        shared[which][threadIdx.y][threadIdx.x] = sum;
    }
    __syncthreads();
    float sum = shared[0][threadIdx.x][threadIdx.y], squares = shared[1][threadIdx.x][threadIdx.y];
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(ALL, sum, step);
        squares += __shfl_down_sync(ALL, squares, step);
    }
    channel = blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x > 0 || channel >= g.c) return;
    float start[1];
    near_means<NHWC>(start, x, g, channel);
    const float count = float(g.n) * g.pixels, offset = sum / count, spread = squares / count - offset * offset;
    mean[channel] = start[0] + offset;
    variance[channel] = spread < 0 ? 0 : spread;  // by rounding
}

// PIXELS of a thread one after the other, in NHWC.
constexpr int PIXELS = 4;

template <typename T, bool NHWC, int VEC>
__global__ void __launch_bounds__(BLOCK)
    batch_norm_apply(const T *x, const float *mean, const float *variance, const float *gamma, const float *beta, T *y,
                     Extent g, float epsilon, int relu) {
    float less[VEC], factor[VEC], add[VEC], value[VEC];
    auto apply = [&](size_t place) {
        unpack(value, load<VEC>(x + place));
#pragma unroll
        for (int v = 0; v < VEC; v++) {
            const int of = NHWC ? v : 0;
            value[v] = (value[v] - less[of]) * factor[of] + add[of];
            if (relu && value[v] < 0) value[v] = 0;  // NaN stays, as fmaxf would not have it
        }
        store<VEC>(y + place, value);
    };
    if constexpr (NHWC) {
        const int chunks = (g.c + LANES * VEC - 1) / (LANES * VEC);
        const int channel = blockIdx.x % chunks * LANES * VEC + threadIdx.x % LANES * VEC;
        if (channel >= g.c) return;
#pragma unroll
        for (int v = 0; v < VEC; v++) {
            less[v] = mean[channel + v], add[v] = beta[channel + v];
            factor[v] = gamma[channel + v] * rsqrtf(variance[channel + v] + epsilon);
        }
        const size_t count = size_t(g.n) * g.pixels;
        const size_t first = size_t(blockIdx.x / chunks) * COPIES * PIXELS + threadIdx.x / LANES;
#pragma unroll
        for (int k = 0; k < PIXELS; k++) {
            const size_t i = first + k * COPIES;
            if (i < count) apply(i * g.c + channel);
        }
    } else {
        const size_t i = (size_t(blockIdx.x) * BLOCK + threadIdx.x) * VEC;
        if (i >= size_t(g.n) * g.c * g.pixels) return;
        const int channel = i / g.pixels % g.c;
        less[0] = mean[channel], add[0] = beta[channel];
        factor[0] = gamma[channel] * rsqrtf(variance[channel] + epsilon);
        apply(i);
    }
}
