// Local response normalisation across channels (Krizhevsky, Sutskever and Hinton, 2012, section 3.3):
//
//     y[c] = x[c] / s[c]^β,   s[c] = k + α · Σ x[j]²,   j = c − n/2 ... c + n/2, within the channels
//
// With s from the forward pass, the gradient needs no powers of other channels' sums to be computed again:
//
//     dx[c] = dy[c] / s[c]^β − 2αβ · x[c] · Σ dy[j] · y[j] / s[j],   j the same
//
// A thread has an element; the n neighbours that it loads are, in NHWC, the same lines as its warp's, and in NCHW lines
// that other warps load: the L1 and L2 caches.
// Expected: the time of reading x and writing y and s once.
#include "places.cuh"
#include "sizes.cuh"
#include "vectors.cuh"

constexpr int BLOCK = 256;  // threads per block

// The channels of an element's window, relative to its own: `first` to `last`, `step` elements apart.
template <bool NHWC> struct Window {
    int first, last, step;
    __device__ Window(unsigned i, const Sizes &g, int half) : step(NHWC ? 1 : g.h * g.w) {
        const Element<NHWC> at(i, g.c, g.h, g.w);
        first = max(at.channel - half, 0) - at.channel, last = min(at.channel + half, g.c - 1) - at.channel;
    }
};

// base ^ exponent for a base above 0; powf serves any base, in several times as many instructions.
__device__ __forceinline__ float power(float base, float exponent) { return exp2f(exponent * log2f(base)); }

// `scale` gets s, float32; it may be null.
template <typename T, bool NHWC>
__global__ void __launch_bounds__(BLOCK)
    lrn(const T *x, T *y, float *scale, Sizes g, int half, float alpha, float beta, float k) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= unsigned(g.n) * g.c * g.h * g.w) return;
    const Window<NHWC> window(i, g, half);
    float sum = 0;
    for (int j = window.first; j <= window.last; j++) {
        const float value = x[ptrdiff_t(i) + ptrdiff_t(j) * window.step];
        sum += value * value;
    }
    const float s = k + alpha * sum;
    y[i] = T(float(x[i]) * power(s, -beta));
    if (scale) scale[i] = s;
}

template <typename T, bool NHWC>
__global__ void __launch_bounds__(BLOCK) lrn_backward(const T *x, const T *y, const T *dy, const float *scale, T *dx,
                                                      Sizes g, int half, float alpha, float beta) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= unsigned(g.n) * g.c * g.h * g.w) return;
    const Window<NHWC> window(i, g, half);
    float sum = 0;
    for (int j = window.first; j <= window.last; j++) {
        const ptrdiff_t place = ptrdiff_t(i) + ptrdiff_t(j) * window.step;
        sum += float(dy[place]) * float(y[place]) / scale[place];
    }
    dx[i] = T(float(dy[i]) * power(scale[i], -beta) - 2.0f * alpha * beta * float(x[i]) * sum);
}
