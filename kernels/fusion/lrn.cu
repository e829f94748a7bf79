// Local response normalisation, y = x / (bias + alpha / size * Σ x²)^beta: the sum is over `size` channels around, of
// those that there are. A thread of `lrn` has an element; lanes go along what lies side by side.
// Expected: the time of reading x and writing y once: the neighbours' channels come from the caches.
// Reached: GoogLeNet at batch 32 in 0.56 ms with eights, in 0.79 with single elements (H200, 2026-11-26).
#include "view.cuh"

struct Lrn {
    int elements, c, h, w;
    int before, after;  // channels on either side
    float factor, beta, bias;
    float x_scale, per_step;  // real value of a step of x, and steps of y for 1
    View x, y;
};

template <class T, bool NHWC> __global__ void lrn(const T *x, T *y, Lrn g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.elements) return;
    int c;
    if (NHWC) c = i % g.c, i /= g.c;
    const int w = i % g.w;
    i /= g.w;
    const int h = i % g.h;
    i /= g.h;
    if (!NHWC) c = i % g.c, i /= g.c;
    auto value = [&](int channel) { return to_float(x[g.x.at(i, channel, h, w)]) * g.x_scale; };
    float sum = 0;
    for (int other = max(c - g.before, 0); other <= min(c + g.after, g.c - 1); other++) {
        sum += value(other) * value(other);
    }
    y[g.y.at(i, c, h, w)] = from_float<T>(value(c) * powf(g.bias + g.factor * sum, -g.beta) * g.per_step);
}

// The same of float16 in NHWC: a thread has 8 channels, and loads four more on either side.
template <int SIZE> __global__ void lrn_eights(const half *x, half *y, Lrn g) {
    constexpr int BEFORE = (SIZE - 1) / 2, AFTER = SIZE / 2, FOUR = 4;
    static_assert(AFTER <= FOUR, "four channels on either side");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.elements / 8) return;
    const int c = i % (g.c / 8) * 8;
    i /= g.c / 8;
    const int w = i % g.w, h = i / g.w % g.h, n = i / g.w / g.h;
    const half *from = x + g.x.at(n, c, h, w);
    __align__(16) uint2 found[4] = {};  // of four channels each
    const uint4 own = *reinterpret_cast<const uint4 *>(from);
    found[1] = make_uint2(own.x, own.y), found[2] = make_uint2(own.z, own.w);
    if (c > 0) found[0] = *reinterpret_cast<const uint2 *>(from - FOUR);
    if (c + 8 < g.c) found[3] = *reinterpret_cast<const uint2 *>(from + 8);
    float value[16];
#pragma unroll
    for (int j = 0; j < 16; j++) value[j] = __half2float(reinterpret_cast<const half *>(found)[j]);
    __align__(16) half result[8];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        float sum = 0;
#pragma unroll
        for (int k = FOUR + j - BEFORE; k <= FOUR + j + AFTER; k++) sum += value[k] * value[k];
        result[j] = __float2half_rn(value[FOUR + j] * __powf(g.bias + g.factor * sum, -g.beta));
    }
    *reinterpret_cast<uint4 *>(y + g.y.at(n, c, h, w)) = *reinterpret_cast<const uint4 *>(result);
}
