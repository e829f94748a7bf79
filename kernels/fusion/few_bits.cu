// y = W x of one vector: a dense layer at a batch of 1, whose time is that of its weights' bytes. Weights of 16 bits
// (float16), 8 (e4m3) or 4 (INT4); x is float16, sums are float32. What has fewer than 16 bits has a scale for each group
// of a row.
//
// A warp has ROWS rows, and a lane 16 bytes of each at a time: x is read and converted once for all of them.
// INT4 become float32 without a conversion: four bits at place s of a word, as the low bits of 2^23, are 2^23 + q · 2^s.
// What that is too much is subtracted, exactly, and x is multiplied by 2^-s beforehand. Three instructions a weight, and
// one shift for eight.
// Expected: the time of W. 8192 × 8192 at 4.8 TB/s: 28, 14 and 7.4 µs.
// Reached: 37, 22 and 20 µs, where PyTorch takes 40 in float16 and 24 in INT4; 4096 × 4096 in 15, 10 and 10 (15 and 9.7):
// an H200, 2026-11-27. Groups of 64 cost FP8 nothing that could be measured. ROWS by bits: the fastest of 2, 4 and 8.
// What holds INT4 up was not measured.
#include <cuda_fp16.h>

constexpr int THREADS = 256;

__device__ __forceinline__ float of_eight_bits(unsigned word, int pair, const float *x) {
    unsigned both;  // two e4m3 as float16
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(both) : "h"((unsigned short)(word >> pair * 16)));
    const float2 v = __half22float2(*reinterpret_cast<const half2 *>(&both));
    return fmaf(v.x, x[0], v.y * x[1]);
}

// The products of 16 bytes of a row with x.
template <int BITS> __device__ __forceinline__ float products(const uint4 &w, const float *x) {
    const unsigned word[4] = {w.x, w.y, w.z, w.w};
    float sum[2] = {};  // two chains
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (BITS == 16) {
            const float2 v = __half22float2(*reinterpret_cast<const half2 *>(&word[i]));
            sum[0] = fmaf(v.x, x[i * 2], sum[0]);
            sum[1] = fmaf(v.y, x[i * 2 + 1], sum[1]);
        } else if constexpr (BITS == 8) {
            sum[0] += of_eight_bits(word[i], 0, x + i * 4);
            sum[1] += of_eight_bits(word[i], 1, x + i * 4 + 2);
        } else {
            const unsigned upper = word[i] >> 20;
#pragma unroll
            for (int t = 0; t < 8; t++) {
                const int place = 4 * (t < 5 ? t : t - 5);
                const unsigned bits = ((t < 5 ? word[i] : upper) & 15u << place) | 0x4b000000;
                const float q = __uint_as_float(bits) - (8388608.0f + float(8 << place));
                sum[t % 2] = fmaf(q, x[i * 8 + t], sum[t % 2]);
            }
        }
    }
    return sum[0] + sum[1];
}

// `columns`: a multiple of 64, and of GROUP; a GROUP of 0 is the whole row.
template <int BITS, int ROWS, int GROUP>
__global__ void __launch_bounds__(THREADS) few_bits(const uint4 *__restrict__ w, const half *__restrict__ scales,
                                                    const half *__restrict__ x, float *__restrict__ y, int rows,
                                                    int columns) {
    constexpr int EACH = 128 / BITS;  // weights in 16 bytes
    const int lane = threadIdx.x % 32, first = (blockIdx.x * THREADS + threadIdx.x) / 32 * ROWS;
    const int vectors = columns / EACH;
    float sum[ROWS] = {};
#pragma unroll 2
    for (int at = lane; at < vectors; at += 32) {
        uint4 found[ROWS];
        float scale[ROWS];
#pragma unroll
        for (int row = 0; row < ROWS; row++) {
            const size_t from = min(first + row, rows - 1);
            found[row] = __ldcs(w + from * vectors + at);
            if constexpr (GROUP) scale[row] = __half2float(scales[from * (columns / GROUP) + at * EACH / GROUP]);
        }
        float factors[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i += 8) {
            const uint4 eight = reinterpret_cast<const uint4 *>(x)[at * (EACH / 8) + i / 8];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float2 v = __half22float2(reinterpret_cast<const half2 *>(&eight)[j]);
                factors[i + j * 2] = v.x, factors[i + j * 2 + 1] = v.y;
            }
#pragma unroll
            for (int t = 1; t < 8 && BITS == 4; t++) factors[i + t] *= 1.0f / (1 << 4 * (t < 5 ? t : t - 5));
        }
#pragma unroll
        for (int row = 0; row < ROWS; row++)
            sum[row] = fmaf(products<BITS>(found[row], factors), GROUP ? scale[row] : 1, sum[row]);
    }
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
        for (int step = 16; step > 0; step /= 2) sum[row] += __shfl_xor_sync(0xffffffff, sum[row], step);
        if (lane == 0 && first + row < rows) {
            y[first + row] = sum[row] * (BITS == 8 && !GROUP ? __half2float(scales[first + row]) : 1);
        }
    }
}
