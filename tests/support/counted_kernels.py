"""Small kernels whose machine instructions Nsight Compute counted on a GPU, with what it read.

H100 80GB HBM3, ncu 2025.3.1.0, NVRTC 13.0.88, CuPy 14.2, 2026-11-23.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CODE = r"""
#include <cuda_fp16.h>
__device__ __noinline__ float polynomial(float x) {
    float y = 0.1f;
    for (int i = 0; i < 4; i++) y = y * x + 0.5f;
    return y;
}
extern "C" __global__ void twice_called(const float *a, float *c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = polynomial(a[i]) - polynomial(polynomial(a[i] + 1.0f));
}
extern "C" __global__ void divided_wide(const float *a, float *c) {
    long long i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = (float)((i << 33) / (i % 5 + 1 + ((i % 2) << 34)));
}
extern "C" __global__ void either(const float *x, float *y, int *where, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float best = 0; int at = -1;
    for (int k = 0; k < n; k++) {
        float v = x[k * 64 + i];
        if (i % 2 == 0 || sqrtf(v * x[i]) > 10) { atomicAdd(y + i, v); at = k; best = v; }
    }
    y[i] += best; where[i] = at;
}
extern "C" __global__ void both(const float *x, float *y, int n, int flag) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    if (flag > 3 && v < n) {
        float sum = 0;
        #pragma unroll 1
        for (int k = 0; k < n; k++) sum += x[i + k];
        y[i] = sum;
    }
    y[i + 64] = v;
}
extern "C" __global__ void greatest(const half *x, half *y, int *where, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    half best[4]; int at[4] = {-1, -1, -1, -1};
    #pragma unroll
    for (int k = 0; k < 3; k++) {
        if ((i + k) % n == 0) continue;
        uint2 raw = *(const uint2*)(x + 4 * (k * 64 + i));
        half v[4]; memcpy(v, &raw, 8);
        for (int c = 0; c < 4; c++)
            if (at[c] < 0 || __hgt(v[c], best[c]) || __hisnan(v[c])) { best[c] = v[c]; at[c] = k; }
    }
    for (int c = 0; c < 4; c++) { y[4 * i + c] = best[c]; where[4 * i + c] = at[c]; }
}
extern "C" __global__ void from_to(const float *x, float *y, const int *first, const int *last) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0, q = 0;
    if (i % 8 < 3) {
        for (int k = first[i]; k < last[i]; k++) { float v = x[k * 32]; s += v; q += v * v; }
    }
    y[i] = s; y[i + 1024] = q;
}
"""
RECURSIVE = r"""
__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void called_again(const float *a, float *c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = fibonacci(i % 6);
}
"""


class Counted(NamedTuple):
    """A launch. `instructions`: by warp; `lanes`: active ones per instruction; branches as ncu counts them, None where
    they were not read. `within`: how far the instructions may be off, as a share."""

    name: str
    grid: int
    block: int
    arguments: tuple
    instructions: int
    lanes: float
    branches: int | None = None
    divergent: int | None = None
    within: float = 0.0


def _zeros(kind: type = np.float32) -> np.ndarray:
    return np.zeros(4096, kind)


_NUMBERS = np.arange(4096, dtype=np.float32) + 1
_FALLING = (np.arange(4096)[::-1] % 37).astype(np.float16)
_WIDE = np.linspace(0.5, 2, 256, dtype=np.float32)
_LANES = np.arange(64, dtype=np.int32)
LAUNCHES = (
    Counted("twice_called", 2, 128, (_WIDE, _zeros()), 376, 32.0),
    Counted("divided_wide", 2, 128, (_WIDE, _zeros()), 898, 31.557),
    Counted("either", 1, 64, (_NUMBERS, _zeros(), _zeros(np.int32), np.int32(1)), 149, 28.07, 14, 3),
    Counted("both", 1, 64, (_NUMBERS, _zeros(), np.int32(40), np.int32(1)), 40, 32.0, 2, 0),
    Counted("both", 1, 64, (_NUMBERS, _zeros(), np.int32(40), np.int32(5)), 613, 20.28, 84, 1),
    Counted("greatest", 1, 64, (_FALLING, _zeros(np.float16), _zeros(np.int32), np.int32(3)), 306, 25.61, 18, 10),
    Counted("from_to", 1, 64, (_FALLING.astype(np.float32), _zeros(), _LANES % 2, _LANES % 2 + 2), 134, 18.09, 12, 2),
    # Lanes come back from a call part by part, which is not followed.
    Counted("called_again", 2, 128, (_WIDE, _zeros()), 3308, 12.231, within=0.02),
)
