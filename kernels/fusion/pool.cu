// Pooling over windows, and over whole images.
//
// pool              A thread has an element of y. Maximum or average, without the padding in either; `area` is what an
//                   average is divided by where padding counts, else 0.
// pool_vectors      The same in NHWC, 16 bytes of channels for a thread: 8 of float16, or 16 of INT8, of which the
//                   largest only. SIDE: of square windows, 0 for any.
// pool_images_nhwc  The average of each channel over an image. A block has 32 channels: lanes go along these, warps
//                   share the pixels, and their sums are added in shared memory, always in the same order.
// pool_images_wide  The same where channels come in 64s, 16 bytes at a time.
// pool_images_nchw  A warp has a channel: lanes go along the pixels and add up by shuffles.
// Expected: the time of reading x once; at one image a launch and one chain of loads.
// Measured (H100 80GB HBM3, 2026-11-22, ncu): 3 × 3 on 16 channels of 8 × 8, float32: 3.4 µs, at batch 128 4.3.
#include <math_constants.h>

#include "view.cuh"

struct Pool {
    int elements;  // of y
    int c, h, w, r, s, p, q;
    int pad_h, pad_w, stride_h, stride_w;
    int area;
    float factor;  // x's step in steps of y
    View x, y;
};

constexpr int WARPS = 8;

template <class T, bool MAXIMUM, bool NHWC> __global__ void pool(const T *x, T *y, Pool g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.elements) return;
    int c;
    if (NHWC) c = i % g.c, i /= g.c;
    const int q = i % g.q;
    i /= g.q;
    const int p = i % g.p;
    i /= g.p;
    if (!NHWC) c = i % g.c, i /= g.c;
    const int h0 = p * g.stride_h - g.pad_h, w0 = q * g.stride_w - g.pad_w;
    const int top = max(h0, 0), bottom = min(h0 + g.r, g.h), left = max(w0, 0), right = min(w0 + g.s, g.w);
    float result = MAXIMUM ? -CUDART_INF_F : 0;
    for (int h = top; h < bottom; h++) {
        for (int w = left; w < right; w++) {
            const float value = to_float(x[g.x.at(i, c, h, w)]);
            if (MAXIMUM) {
                result = value <= result ? result : value;  // a NaN is the largest
            } else {
                result += value;
            }
        }
    }
    if (!MAXIMUM) result /= g.area ? g.area : (bottom - top) * (right - left);
    y[g.y.at(i, c, p, q)] = from_float<T>(result * g.factor);
}

// Four bytes of a vector: two of float16, or four of INT8.
__device__ __forceinline__ half2 halves(unsigned word) { return *reinterpret_cast<const half2 *>(&word); }
__device__ __forceinline__ unsigned word_of(half2 v) { return *reinterpret_cast<const unsigned *>(&v); }
__device__ __forceinline__ unsigned larger(unsigned a, unsigned b, half) {
    return word_of(__hmax2_nan(halves(a), halves(b)));
}
__device__ __forceinline__ unsigned larger(unsigned a, unsigned b, signed char) { return __vmaxs4(a, b); }

template <class T, bool MAXIMUM, int SIDE> __global__ void pool_vectors(const T *x, T *y, Pool g) {
    constexpr int EACH = 16 / sizeof(T);
    static_assert(MAXIMUM || sizeof(T) == 2, "averages of INT8 are left to pool");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.elements / EACH) return;
    const int c = i % (g.c / EACH) * EACH;
    i /= g.c / EACH;
    const int q = i % g.q;
    i /= g.q;
    const int p = i % g.p, n = i / g.p, h0 = p * g.stride_h - g.pad_h, w0 = q * g.stride_w - g.pad_w;
    unsigned result[4];
    float2 sum[4] = {};
    int inside = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) result[j] = sizeof(T) == 2 ? 0xfc00fc00 : 0x80808080;  // the least
#pragma unroll
    for (int r = 0; r < (SIDE ? SIDE : g.r); r++) {
#pragma unroll
        for (int s = 0; s < (SIDE ? SIDE : g.s); s++) {
            const int h = h0 + r, w = w0 + s;
            if (unsigned(h) >= unsigned(g.h) || unsigned(w) >= unsigned(g.w)) continue;
            const uint4 found = *reinterpret_cast<const uint4 *>(x + g.x.at(n, c, h, w));
            const unsigned v[4] = {found.x, found.y, found.z, found.w};
            inside++;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (MAXIMUM) {
                    result[j] = larger(result[j], v[j], T());
                } else {
                    const float2 one = __half22float2(halves(v[j]));
                    sum[j].x += one.x, sum[j].y += one.y;
                }
            }
        }
    }
    const float share = 1.0f / (g.area ? g.area : inside);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (!MAXIMUM) result[j] = word_of(__floats2half2_rn(sum[j].x * share, sum[j].y * share));
    }
    *reinterpret_cast<uint4 *>(y + g.y.at(n, c, p, q)) = make_uint4(result[0], result[1], result[2], result[3]);
}

template <class T, class Y = float> __global__ void pool_images_nhwc(const T *x, Y *y, Pool g) {
    __shared__ float sums[WARPS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tiles = (g.c - 1) / 32 + 1;
    const int n = blockIdx.x / tiles, c = blockIdx.x % tiles * 32 + lane;
    float sum = 0;
    if (c < g.c) {
#pragma unroll 8
        for (int i = warp; i < g.h * g.w; i += WARPS) {
            const int h = i / g.w;
            sum += to_float(x[g.x.at(n, c, h, i - h * g.w)]);
        }
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && c < g.c) {
#pragma unroll
        for (int i = 1; i < WARPS; i++) sum += sums[i][lane];
        y[g.y.at(n, c, 0, 0)] = from_float<Y>(sum / g.area * g.factor);
    }
}

// Threads that have the same 16 bytes of channels share the pixels.
template <class T, class Y> __global__ void pool_images_wide(const T *x, Y *y, Pool g) {
    constexpr int EACH = 16 / sizeof(T), ACROSS = 64 / EACH, SHARES = 32 * WARPS / ACROSS;
    __shared__ float sums[SHARES][64 + 1];
    const int tiles = g.c / 64, n = blockIdx.x / tiles, first = blockIdx.x % tiles * 64;
    const int c = threadIdx.x % ACROSS * EACH, share = threadIdx.x / ACROSS;
    float sum[EACH] = {};
#pragma unroll 2
    for (int i = share; i < g.h * g.w; i += SHARES) {
        const int h = i / g.w;
        const uint4 found = *reinterpret_cast<const uint4 *>(x + g.x.at(n, first + c, h, i - h * g.w));
#pragma unroll
        for (int j = 0; j < EACH; j++) sum[j] += to_float(reinterpret_cast<const T *>(&found)[j]);
    }
#pragma unroll
    for (int j = 0; j < EACH; j++) sums[share][c + j] = sum[j];
    __syncthreads();
    if (threadIdx.x >= 64) return;
    float all = 0;
#pragma unroll
    for (int i = 0; i < SHARES; i++) all += sums[i][threadIdx.x];
    y[g.y.at(n, first + threadIdx.x, 0, 0)] = from_float<Y>(all / g.area * g.factor);
}

template <class T, class Y = float> __global__ void pool_images_nchw(const T *x, Y *y, Pool g) {
    const int lane = threadIdx.x % 32, i = blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= g.elements) return;
    const int n = i / g.c, c = i - n * g.c;
    float sum = 0;
#pragma unroll 4
    for (int j = lane; j < g.h * g.w; j += 32) {
        const int h = j / g.w;
        sum += to_float(x[g.x.at(n, c, h, j - h * g.w)]);
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0) y[g.y.at(n, c, 0, 0)] = from_float<Y>(sum / g.area * g.factor);
}
