// A convolution as a matrix product of filters × depth and depth × pixels: which element of the tensors a row, a column
// and a depth stand for.
#pragma once
#include "sizes.cuh"

struct Pixel {
    int n, p, q;
};

struct Tap {
    int c, r, s;  // c: within the filter's group
};

// The pixel of y that column m stands for: m = (n * P + p) * Q + q.
__device__ __forceinline__ Pixel pixel_of(int m, const Sizes &g) {
    const int row = m / g.q;
    return {row / g.p, row % g.p, m - row * g.q};
}

// The element of a KCRS filter that depth k stands for: k = (c * R + r) * S + s.
__device__ __forceinline__ Tap tap_of(int k, const Sizes &g) {
    const int row = k / g.s;
    return {row / g.r, row % g.r, k - row * g.s};
}

// Goes on to the next depth without a division.
__device__ __forceinline__ void advance(Tap &tap, const Sizes &g) {
    if (++tap.s == g.s) {
        tap.s = 0;
        if (++tap.r == g.r) {
            tap.r = 0;
            tap.c++;
        }
    }
}
