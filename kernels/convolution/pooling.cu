// Pooling: the largest element or the mean of each window, channel by channel; forward and backward, NCHW or NHWC.
// An element of y takes one comparison or addition for each element of its window, a 9th of a depthwise convolution's
// work for the same bytes: the memory is the limit.
// Expected: the time of reading x and writing y once. Windows overlap, 3 × 3 with stride 2 by a factor of 2.25; what
// neighbouring threads share is in the L1 or the L2 cache.
//
// max       y = the window's largest element; where several are, the first, row by row. `index`, one byte for each
//           element of y, says which it was (r · S + s). The backward pass then needs dy and these bytes, and not x and
//           y: 3 bytes for each element of y in FP16, where comparing x with y again reads 4, and 2 for each of x.
// average   y = the sum / R · S, or / the elements of the window that are inside the image.
// backward  A thread collects, for an element of dx, from the windows that hold it: no atomics, always the same sums.
//
// VEC: neighbouring channels of a thread, 16 bytes, in NHWC. WINDOW, STRIDE: of both axes where the compiler is to know
// them, so that it loads all elements before the first is needed, and does not divide; 0 for any.
#include <math_constants.h>

#include "places.cuh"
#include "sizes.cuh"
#include "vectors.cuh"

constexpr int BLOCK = 256;  // threads per block

// VEC bytes as one load brings them: what `index` holds for a vector.
template <int VEC> struct Bytes;
template <> struct Bytes<8> { using type = uint2; };
template <> struct Bytes<4> { using type = unsigned; };
template <> struct Bytes<1> { using type = unsigned char; };

// The windows' sizes, of which the compiler knows some.
template <int WINDOW, int STRIDE> __device__ __forceinline__ Sizes known(Sizes g) {
    if (WINDOW) g.r = g.s = WINDOW;
    if (STRIDE) g.stride_h = g.stride_w = STRIDE;
    return g;
}

// The thread's element of a result of `rows` × `columns` pixels; false past the end.
template <bool NHWC, int VEC> __device__ __forceinline__ bool mine(unsigned &i, const Sizes &g, int rows, int columns) {
    i = blockIdx.x * BLOCK + threadIdx.x;
    return i < unsigned(g.n) * (g.c / VEC) * rows * columns;
}

// `index` may be null.
template <typename T, bool NHWC, int VEC, int WINDOW, int STRIDE>
__global__ void __launch_bounds__(BLOCK) pooling_max(const T *x, T *y, unsigned char *index, Sizes given) {
    const Sizes g = known<WINDOW, STRIDE>(given);
    unsigned i;
    if (!mine<NHWC, VEC>(i, g, g.p, g.q)) return;
    const Element<NHWC, VEC> at(i, g.c, g.p, g.q);
    const Strides<NHWC> of_x(g.c, g.h, g.w);
    const T *from = x + of_x.first(at.image, at.channel, g.h, g.w);
    const int top = at.row * g.stride_h - g.pad_h, left = at.column * g.stride_w - g.pad_w;
    float best[VEC];
    unsigned char which[VEC];
#pragma unroll
    for (int v = 0; v < VEC; v++) best[v] = -CUDART_INF_F, which[v] = 0;
    bool found = false;
#pragma unroll
    for (int r = 0; r < g.r; r++) {
#pragma unroll
        for (int s = 0; s < g.s; s++) {
            const int row = top + r, column = left + s;
            if (unsigned(row) >= unsigned(g.h) || unsigned(column) >= unsigned(g.w)) continue;
            float value[VEC];
            unpack(value, load<VEC>(from + ptrdiff_t(row) * of_x.row + ptrdiff_t(column) * of_x.column));
#pragma unroll
            for (int v = 0; v < VEC; v++) {
                // The first of a window is taken though it be −∞; NaN is, too, and is kept.
                if (!found || value[v] > best[v] || value[v] != value[v]) {
                    best[v] = value[v], which[v] = r * g.s + s;
                }
            }
            found = true;
        }
    }
    store<VEC>(y + size_t(i) * VEC, best);
    if (index) {
        union {
            unsigned char bytes[VEC];
            typename Bytes<VEC>::type vector;
        } together;
#pragma unroll
        for (int v = 0; v < VEC; v++) together.bytes[v] = which[v];
        *reinterpret_cast<typename Bytes<VEC>::type *>(index + size_t(i) * VEC) = together.vector;
    }
}

// The windows that hold an element are numbers `last`, `last` − 1, ... down to `first` along an axis: `most` at most.
struct Range {
    int first, last, most;
    __device__ Range(int element, int pad, int stride, int window, int count) {
        const int before = element + pad - window + 1;  // the first window that reaches it begins here, or later
        first = before > 0 ? (before + stride - 1) / stride : 0;
        last = min((element + pad) / stride, count - 1);
        most = (window + stride - 1) / stride;
    }
};

template <typename T, bool NHWC, int VEC, int WINDOW, int STRIDE>
__global__ void __launch_bounds__(BLOCK)
    pooling_max_backward(const T *dy, const unsigned char *index, T *dx, Sizes given) {
    const Sizes g = known<WINDOW, STRIDE>(given);
    unsigned i;
    if (!mine<NHWC, VEC>(i, g, g.h, g.w)) return;
    const Element<NHWC, VEC> at(i, g.c, g.h, g.w);
    const Strides<NHWC> of_y(g.c, g.p, g.q);
    const size_t first = of_y.first(at.image, at.channel, g.p, g.q);
    const Range down(at.row, g.pad_h, g.stride_h, g.r, g.p), across(at.column, g.pad_w, g.stride_w, g.s, g.q);
    float sum[VEC] = {};
#pragma unroll
    for (int k = 0; k < down.most; k++) {
        const int p = down.last - k;
#pragma unroll
        for (int m = 0; m < across.most; m++) {
            const int q = across.last - m;
            if (p < down.first || q < across.first) continue;
            const size_t place = first + ptrdiff_t(p) * of_y.row + ptrdiff_t(q) * of_y.column;
            const int here = (at.row + g.pad_h - p * g.stride_h) * g.s + at.column + g.pad_w - q * g.stride_w;
            union {
                typename Bytes<VEC>::type vector;
                unsigned char bytes[VEC];
            } which;
            which.vector = *reinterpret_cast<const typename Bytes<VEC>::type *>(index + place);
            float value[VEC];
            unpack(value, load<VEC>(dy + place));
#pragma unroll
            for (int v = 0; v < VEC; v++) sum[v] += which.bytes[v] == here ? value[v] : 0.0f;
        }
    }
    store<VEC>(dx + size_t(i) * VEC, sum);
}

// 1 / how many elements a window's mean is taken of.
__device__ __forceinline__ float share(const Sizes &g, int p, int q, int all) {
    if (all) return 1.0f / (g.r * g.s);
    const int top = p * g.stride_h - g.pad_h, left = q * g.stride_w - g.pad_w;
    const int rows = min(top + g.r, g.h) - max(top, 0), columns = min(left + g.s, g.w) - max(left, 0);
    return 1.0f / (rows * columns);
}

template <typename T, bool NHWC, int VEC, int WINDOW, int STRIDE>
__global__ void __launch_bounds__(BLOCK) pooling_average(const T *x, T *y, Sizes given, int all) {
    const Sizes g = known<WINDOW, STRIDE>(given);
    unsigned i;
    if (!mine<NHWC, VEC>(i, g, g.p, g.q)) return;
    const Element<NHWC, VEC> at(i, g.c, g.p, g.q);
    const Strides<NHWC> of_x(g.c, g.h, g.w);
    const T *from = x + of_x.first(at.image, at.channel, g.h, g.w);
    const int top = at.row * g.stride_h - g.pad_h, left = at.column * g.stride_w - g.pad_w;
    float sum[VEC] = {};
#pragma unroll
    for (int r = 0; r < g.r; r++) {
#pragma unroll
        for (int s = 0; s < g.s; s++) {
            const int row = top + r, column = left + s;
            if (unsigned(row) >= unsigned(g.h) || unsigned(column) >= unsigned(g.w)) continue;
            float value[VEC];
            unpack(value, load<VEC>(from + ptrdiff_t(row) * of_x.row + ptrdiff_t(column) * of_x.column));
#pragma unroll
            for (int v = 0; v < VEC; v++) sum[v] += value[v];
        }
    }
    const float factor = share(g, at.row, at.column, all);
#pragma unroll
    for (int v = 0; v < VEC; v++) sum[v] *= factor;
    store<VEC>(y + size_t(i) * VEC, sum);
}

template <typename T, bool NHWC, int VEC, int WINDOW, int STRIDE>
__global__ void __launch_bounds__(BLOCK) pooling_average_backward(const T *dy, T *dx, Sizes given, int all) {
    const Sizes g = known<WINDOW, STRIDE>(given);
    unsigned i;
    if (!mine<NHWC, VEC>(i, g, g.h, g.w)) return;
    const Element<NHWC, VEC> at(i, g.c, g.h, g.w);
    const Strides<NHWC> of_y(g.c, g.p, g.q);
    const T *from = dy + of_y.first(at.image, at.channel, g.p, g.q);
    const Range down(at.row, g.pad_h, g.stride_h, g.r, g.p), across(at.column, g.pad_w, g.stride_w, g.s, g.q);
    float sum[VEC] = {};
#pragma unroll
    for (int k = 0; k < down.most; k++) {
        const int p = down.last - k;
#pragma unroll
        for (int m = 0; m < across.most; m++) {
            const int q = across.last - m;
            if (p < down.first || q < across.first) continue;
            const float factor = share(g, p, q, all);
            float value[VEC];
            unpack(value, load<VEC>(from + ptrdiff_t(p) * of_y.row + ptrdiff_t(q) * of_y.column));
#pragma unroll
            for (int v = 0; v < VEC; v++) sum[v] += factor * value[v];
        }
    }
    store<VEC>(dx + size_t(i) * VEC, sum);
}
