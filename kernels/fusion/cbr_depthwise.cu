// A depthwise CBR, a filter for each channel, in float16 and NHWC: 18 operations for the 4 bytes of a result at 3 × 3, so
// memory is the limit. A thread has 8 channels, 16 bytes, of WIDE pixels side by side, and loads each pixel of a row of
// their windows once; what threads above each other share comes from the caches. Filters lie as (r, s, c).
// Expected: the time of reading x and writing y once.
// Reached: MobileNetV2's 32 channels of 112 × 112 at batch 32 in 25 µs, where 51 MB take 12 (H200, 2026-11-26).
#include "cbr.cuh"

constexpr int PAIRS = 4;  // of a thread's channels

__device__ __forceinline__ void unpacked(float2 (&to)[PAIRS], const half *from, bool inside) {
    const uint4 found = inside ? *reinterpret_cast<const uint4 *>(from) : uint4{};
#pragma unroll
    for (int j = 0; j < PAIRS; j++) to[j] = __half22float2(reinterpret_cast<const half2 *>(&found)[j]);
}

template <int R, int S, int STRIDE, int WIDE, bool SWISH>
__global__ void __launch_bounds__(128) cbr_depthwise(const half *__restrict__ x, const half *__restrict__ filters,
                                                     const float *__restrict__ bias, half *__restrict__ y, Cbr g) {
    constexpr int COLUMNS = (WIDE - 1) * STRIDE + S;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int eights = g.k / 8, across = (g.q - 1) / WIDE + 1, k = i % eights * 8;
    i /= eights;
    const int q0 = i % across * WIDE, line = i / across, n = line / g.p, p = line - n * g.p;
    if (line >= g.pixels / g.q) return;
    float2 sum[WIDE][PAIRS];
#pragma unroll
    for (int j = 0; j < WIDE * PAIRS; j++) {
        sum[j / PAIRS][j % PAIRS] = *reinterpret_cast<const float2 *>(bias + k + j % PAIRS * 2);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int h = p * STRIDE - g.pad_h + r, w0 = q0 * STRIDE - g.pad_w;
        float2 row[COLUMNS][PAIRS];
#pragma unroll
        for (int at = 0; at < COLUMNS; at++) {
            const bool inside = unsigned(h) < unsigned(g.h) && unsigned(w0 + at) < unsigned(g.w);
            unpacked(row[at], x + g.x.at(n, k, h, w0 + at), inside);
        }
#pragma unroll
        for (int s = 0; s < S; s++) {
            float2 filter[PAIRS];
            unpacked(filter, filters + (r * S + s) * g.k + k, true);
#pragma unroll
            for (int j = 0; j < WIDE * PAIRS; j++) {
                const float2 from = row[j / PAIRS * STRIDE + s][j % PAIRS];
                sum[j / PAIRS][j % PAIRS].x += from.x * filter[j % PAIRS].x;
                sum[j / PAIRS][j % PAIRS].y += from.y * filter[j % PAIRS].y;
            }
        }
    }
    const half2 least = least_of(g.relu), most = __float2half2_rn(g.most);
#pragma unroll
    for (int at = 0; at < WIDE; at++) {
        if (q0 + at >= g.q) break;
        uint4 result;
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            reinterpret_cast<half2 *>(&result)[j] = activated<SWISH>(sum[at][j].x, sum[at][j].y, least, most);
        }
        *reinterpret_cast<uint4 *>(y + g.y[0].at(n, k, p, q0 + at)) = result;
    }
}
