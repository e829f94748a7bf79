// 1. A thread for each element of y: the definition, as a kernel. NCHW, float32, any padding, stride, dilation, groups.
// Lanes compute neighbours in a row of y, so they read neighbours in a row of x (stride 1), and all the same element of
// w. Each element of x is read once for each filter and window that it is in.
// Expected: two loads for each multiply-add, so the caches' rate is the limit and not arithmetic: a warp's 32 products
// take two instructions that load and one that multiplies, beside those that find the place.
// Reached: 3717 µs for the 3 × 3 windows of ResNet-50's conv2_x (64 channels of 56 × 56, batch 32), 3841 µs for those
// of conv4_x (256 of 14 × 14): 2.0 and 1.9 TFLOP/s. In Numba, whose indices have 64 bits, 10950 and 11070 µs.
// NVIDIA H100 80GB HBM3, 2026-11-27, as all figures in the headers of steps 1 to 3 and of winograd.cu.
#include "sizes.cuh"

extern "C" __global__ void conv_direct(const float *__restrict__ x, const float *__restrict__ w,
                                       const float *__restrict__ bias, float *__restrict__ y, Sizes g, int relu) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.n * g.k * g.p * g.q) {
        return;
    }
    const int q = i % g.q, p = i / g.q % g.p, k = i / g.q / g.p % g.k, n = i / g.q / g.p / g.k;
    const int first_c = k / g.group_k * g.group_c;  // of the filter's group
    const int h0 = p * g.stride_h - g.pad_h, w0 = q * g.stride_w - g.pad_w;
    float sum = 0;
    for (int c = 0; c < g.group_c; c++) {
        const float *image = x + (n * g.c + first_c + c) * g.h * g.w;
        const float *filter = w + (k * g.group_c + c) * g.r * g.s;
        for (int r = 0; r < g.r; r++) {
            const int h = h0 + r * g.dilation_h;
            if (h < 0 || h >= g.h) {
                continue;
            }
            for (int s = 0; s < g.s; s++) {
                const int column = w0 + s * g.dilation_w;
                if (column >= 0 && column < g.w) {
                    sum += image[h * g.w + column] * filter[r * g.s + s];
                }
            }
        }
    }
    if (bias) {
        sum += bias[k];
    }
    y[i] = relu && sum < 0 ? 0 : sum;
}
