// A fused convolution, "CBR" (convolution, bias, ReLU): its sizes, and the epilogue that all its kernels share.
#pragma once
#include "view.cuh"

constexpr int MOST_OUTPUTS = 4;
constexpr int FLOAT32 = 0, FLOAT16 = 1, INT8 = 2;
constexpr int OUTSIDE = -(1 << 29);  // a row that is outside of every image, whatever is added to it, itself included

// Filters lie by (r, s, c), whatever x's layout: the depth of the matrix product is (r * S + s) * C + c.
struct Cbr {
    int pixels;                    // of y: images * P * Q
    int h, w, c, r, s, p, q, k;    // letters as in cuDNN; c: channels that the filters see
    int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
    int depth;                     // r * s * c
    int relu, swish;
    float most;                    // of a ReLU's results
    int outputs;                   // tensors that y is spread over
    int first[MOST_OUTPUTS];       // the first filter of each
    int type[MOST_OUTPUTS];        // of its elements: FLOAT32, FLOAT16 or INT8
    float per_step[MOST_OUTPUTS];  // what results are multiplied by: 1 / scale of INT8, else 1
    View x, residual, y[MOST_OUTPUTS];
};

struct Place {
    int n, p, q;  // image, row and column of a pixel of y
};

__device__ __forceinline__ Place place_of(int pixel, const Cbr &g) {
    const int row = pixel / g.q, n = row / g.p;
    return {n, row - n * g.p, pixel - row * g.q};
}

struct Window {
    int n, h, w;  // image, and where the window of a pixel begins, in the padding perhaps
};

__device__ __forceinline__ Window window_of(int pixel, const Cbr &g) {
    const Place at = place_of(pixel, g);
    return {at.n, at.p * g.stride_h - g.pad_h, at.q * g.stride_w - g.pad_w};
}

// What the epilogue knows of a filter, whatever the pixel: 10 registers.
struct Column {
    float scale, bias, per_step;
    void *y;
    int type, first, image, row, column;  // of y: where its elements of this filter lie
};

// y = relu(sum * scale + bias + residual * residual_scale) * per_step, in float32 and rounded once. T: the residual's
// type. Any kernel writes any type: a layer that goes on in another precision needs no conversion.
template <class T> struct Epilogue {
    const float *scale, *bias;  // for each filter; no scale: 1
    const T *residual;          // null: none
    float residual_scale;
    void *y0, *y1, *y2, *y3;

    __device__ __forceinline__ Column column(int k, const Cbr &g) const {
        Column of;
        of.scale = scale ? scale[k] : 1;
        of.bias = bias[k];
        if (g.outputs == 1 || k < g.first[1]) {
            choose(of, y0, 0, k, g);
        } else if (g.outputs == 2 || k < g.first[2]) {
            choose(of, y1, 1, k, g);
        } else if (g.outputs == 3 || k < g.first[3]) {
            choose(of, y2, 2, k, g);
        } else {
            choose(of, y3, 3, k, g);
        }
        return of;
    }

    __device__ __forceinline__ static void choose(Column &of, void *y, int i, int k, const Cbr &g) {
        const View &view = g.y[i];
        of.y = y, of.type = g.type[i], of.per_step = g.per_step[i];
        of.first = view.first + (k - g.first[i]) * view.channel;
        of.image = view.image, of.row = view.row, of.column = view.column;
    }

    __device__ __forceinline__ void write(float sum, const Column &of, int k, const Place &at, const Cbr &g) const {
        float value = sum * of.scale + of.bias;
        if (residual) value += to_float(residual[g.residual.at(at.n, k, at.p, at.q)]) * residual_scale;
        value = activated(value, g.relu, g.swish, g.most) * of.per_step;
        const int element = of.first + at.n * of.image + at.p * of.row + at.q * of.column;
        if (of.type == FLOAT32) {
            static_cast<float *>(of.y)[element] = value;
        } else if (of.type == FLOAT16) {
            static_cast<half *>(of.y)[element] = from_float<half>(value);
        } else {
            static_cast<signed char *>(of.y)[element] = from_float<signed char>(value);
        }
    }
};

// How the threads of a block share its BM × BN results: lanes go along what lies side by side in y, filters (NHWC) or
// pixels (NCHW). A thread keeps to one filter, or to one pixel. Scale and bias of its first result are loaded when this
// is made, before the products, so that nobody waits for them in the end.
template <int BM, int BN, int THREADS, bool ALONG_FILTERS, class T> struct Results {
    static_assert(THREADS % BM == 0 || ALONG_FILTERS, "a thread keeps to one pixel");
    static_assert(THREADS % BN == 0 || !ALONG_FILTERS, "a thread keeps to one filter");
    const Epilogue<T> &epilogue;
    const Cbr &g;
    const int first_filter, first_pixel;
    Column column;

    __device__ __forceinline__ Results(const Epilogue<T> &epilogue, int first_filter, int first_pixel, const Cbr &g)
        : epilogue(epilogue), g(g), first_filter(first_filter), first_pixel(first_pixel) {
        const int n = ALONG_FILTERS ? threadIdx.x % BN : threadIdx.x / BM;
        column = epilogue.column(min(first_filter + n, g.k - 1), g);
    }

    // sum(m, n): of pixel m and filter n of the block.
    template <class Sum> __device__ __forceinline__ void write(Sum sum) const {
        if (ALONG_FILTERS) {
            const int n = threadIdx.x % BN, k = first_filter + n;
            if (k >= g.k) return;
            for (int m = threadIdx.x / BN; m < BM && first_pixel + m < g.pixels; m += THREADS / BN) {
                epilogue.write(sum(m, n), column, k, place_of(first_pixel + m, g), g);
            }
        } else {
            const int m = threadIdx.x % BM, pixel = first_pixel + m;
            if (pixel >= g.pixels) return;
            const Place place = place_of(pixel, g);
            Column of = column;
            for (int n = threadIdx.x / BM; n < BN && first_filter + n < g.k; n += THREADS / BM) {
                if (n >= THREADS / BM) of = epilogue.column(first_filter + n, g);
                epilogue.write(sum(m, n), of, first_filter + n, place, g);
            }
        }
    }
};
