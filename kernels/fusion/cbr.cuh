// A fused convolution, "CBR" (convolution, bias, ReLU): its sizes, and the epilogue that all its kernels share.
#pragma once
#include "view.cuh"

constexpr int MOST_OUTPUTS = 4;
constexpr int FLOAT32 = 0, FLOAT16 = 1, INT8 = 2;

// Filters lie by (r, s, c), whatever x's layout: the depth of the matrix product is (r * S + s) * C + c.
struct Cbr {
    int pixels;                    // of y: images * P * Q
    int h, w, c, r, s, p, q, k;    // letters as in cuDNN; c: channels that the filters see
    int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
    int depth;                     // r * s * c
    int relu;
    int outputs;                   // tensors that y is spread over
    int first[MOST_OUTPUTS];       // the first filter of each
    int type[MOST_OUTPUTS];        // of its elements: FLOAT32, FLOAT16 or INT8
    float per_step[MOST_OUTPUTS];  // what results are multiplied by: 1 / scale of INT8, else 1
    View x, residual, y[MOST_OUTPUTS];
};

struct Window {
    int n, h, w;  // image, and where its window begins, in the padding perhaps
};

__device__ __forceinline__ Window window_of(int pixel, const Cbr &g) {
    const int row = pixel / g.q, n = row / g.p;
    return {n, (row - n * g.p) * g.stride_h - g.pad_h, (pixel - row * g.q) * g.stride_w - g.pad_w};
}

// y = relu(sum * scale + bias + residual * residual_scale) * per_step, in float32 and rounded once.
// T: the residual's type. Any kernel writes any type: a layer that goes on in another precision needs no conversion.
template <class T> struct Epilogue {
    const float *scale, *bias;  // for each filter; no scale: 1
    const T *residual;          // null: none
    float residual_scale;
    void *y0, *y1, *y2, *y3;

    __device__ __forceinline__ void operator()(float sum, int k, int pixel, const Cbr &g) const {
        const int row = pixel / g.q, n = row / g.p, p = row - n * g.p, q = pixel - row * g.q;
        if (scale) sum *= scale[k];
        sum += bias[k];
        if (residual) sum += to_float(residual[g.residual.at(n, k, p, q)]) * residual_scale;
        if (g.relu) sum = ::relu(sum);
        if (g.outputs == 1 || k < g.first[1]) {
            put(y0, 0, sum, n, k, p, q, g);
        } else if (g.outputs == 2 || k < g.first[2]) {
            put(y1, 1, sum, n, k, p, q, g);
        } else if (g.outputs == 3 || k < g.first[3]) {
            put(y2, 2, sum, n, k, p, q, g);
        } else {
            put(y3, 3, sum, n, k, p, q, g);
        }
    }

    __device__ __forceinline__ static void put(void *y, int i, float value, int n, int k, int p, int q, const Cbr &g) {
        const int at = g.y[i].at(n, k - g.first[i], p, q);
        value *= g.per_step[i];
        if (g.type[i] == FLOAT32) {
            static_cast<float *>(y)[at] = value;
        } else if (g.type[i] == FLOAT16) {
            static_cast<half *>(y)[at] = from_float<half>(value);
        } else {
            static_cast<signed char *>(y)[at] = from_float<signed char>(value);
        }
    }
};
