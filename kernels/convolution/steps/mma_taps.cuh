// A depth of the NHWC kernels, (r * S + s) * channels + channel, and how they go through it without divisions.
#pragma once
#include "sizes.cuh"

constexpr int NOWHERE = -(1 << 30);  // a row above every image, also after a window's extent is added

struct Tap {
    int r, s, channel;

    __device__ __forceinline__ Tap() {}
    __device__ __forceinline__ Tap(int depth, int channels, const Sizes &g) : r(0), s(0), channel(0) {
        advance(depth, channels, g);
    }

    // `channels`: of a tap, those of x's group in the forward pass, those of y's in the gradient of x.
    __device__ __forceinline__ void advance(int depth, int channels, const Sizes &g) {
        channel += depth;
        while (channel >= channels) {
            channel -= channels;
            if (++s == g.s) {
                s = 0;
                r++;
            }
        }
    }
};
