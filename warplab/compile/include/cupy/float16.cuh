// Half precision as CuPy's kernels have it: arithmetic is float's, assignments round.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cupy/carray.cuh>

#define WARPLAB_SMALL_FLOAT(NAME, RAW, FROM_FLOAT, TO_FLOAT)                                             \
    class NAME {                                                                                         \
    public:                                                                                              \
        NAME() = default;                                                                                \
        __device__ NAME(float v) : data_(FROM_FLOAT(v)) {}                                               \
        template <typename T> explicit __device__ NAME(T v) : data_(FROM_FLOAT(static_cast<float>(v))) {} \
        explicit __device__ NAME(RAW v) : data_(v) {}                                                    \
        __device__ operator float() const { return TO_FLOAT(data_); }                                    \
        NAME& operator=(const NAME&) = default;                                                          \
        template <typename T> __device__ NAME& operator=(const T& v) { return *this = NAME(v); }         \
        template <typename T> __device__ NAME& operator+=(const T& v) { return *this = NAME(*this + v); } \
        template <typename T> __device__ NAME& operator-=(const T& v) { return *this = NAME(*this - v); } \
        template <typename T> __device__ NAME& operator*=(const T& v) { return *this = NAME(*this * v); } \
        template <typename T> __device__ NAME& operator/=(const T& v) { return *this = NAME(*this / v); } \
                                                                                                         \
    private:                                                                                             \
        RAW data_;                                                                                       \
    };                                                                                                   \
    inline __device__ NAME min(NAME x, NAME y) { return NAME(fminf(x, y)); }                             \
    inline __device__ NAME max(NAME x, NAME y) { return NAME(fmaxf(x, y)); }                             \
    inline __device__ NAME fmin(NAME x, NAME y) { return NAME(fminf(x, y)); }                            \
    inline __device__ NAME fmax(NAME x, NAME y) { return NAME(fmaxf(x, y)); }                            \
    inline __device__ bool isnan(NAME x) { return isnan(float(x)); }                                     \
    inline __device__ bool isinf(NAME x) { return isinf(float(x)); }                                     \
    inline __device__ bool isfinite(NAME x) { return isfinite(float(x)); }

WARPLAB_SMALL_FLOAT(float16, __half, __float2half_rn, __half2float)
WARPLAB_SMALL_FLOAT(bfloat16, __nv_bfloat16, __float2bfloat16_rn, __bfloat162float)
