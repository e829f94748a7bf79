// Where the elements of a tensor lie, and how its types become float32 and back.
#pragma once
#include <cuda_fp16.h>

// A tensor, or some of its channels. NCHW and NHWC differ in the strides alone. A concatenation needs no kernel where
// its parts are written through views of one tensor that begin at different channels.
struct View {
    int first;                        // number of the element of the first image, channel, row and column
    int image, channel, row, column;  // elements from one to the next

    __device__ __forceinline__ int at(int n, int c, int h, int w) const {
        return first + n * image + c * channel + h * row + w * column;
    }
};

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(signed char value) { return value; }

template <class T> __device__ __forceinline__ T from_float(float value);
template <> __device__ __forceinline__ float from_float(float value) { return value; }
template <> __device__ __forceinline__ half from_float(float value) { return __float2half_rn(value); }
// To the nearest, ties to even, at most 127 either way: symmetric INT8 leaves -128 out.
template <> __device__ __forceinline__ signed char from_float(float value) {
    return max(-127, min(127, __float2int_rn(value)));
}

// To whole steps in the low byte: adding 1.5 · 2^23 leaves no room for fractions. Ties go to even.
__device__ __forceinline__ unsigned in_steps(float value, float least, float most) {
    return __float_as_uint(fminf(fmaxf(value, least), most) + 12582912.0f);
}

// The low bytes of four words as one.
__device__ __forceinline__ unsigned low_bytes(unsigned a, unsigned b, unsigned c, unsigned d) {
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// A NaN stays one.
__device__ __forceinline__ float relu(float value) { return value < 0 ? 0 : value; }

__device__ __forceinline__ float swish(float value) { return value / (1 + __expf(-value)); }

// The activation of a CBR: ReLU up to `most`, SiLU, or none.
__device__ __forceinline__ float activated(float value, int with_relu, int with_swish, float most) {
    if (with_swish) return swish(value);
    value = with_relu ? relu(value) : value;
    return value > most ? most : value;
}

#if __CUDA_ARCH__ >= 800
// The same of two results as they are stored: bounds of float16 leave what is rounded as bounds before it would.
template <bool SWISH> __device__ __forceinline__ half2 activated(float a, float b, half2 least, half2 most) {
    const half2 rounded = SWISH ? __floats2half2_rn(swish(a), swish(b)) : __floats2half2_rn(a, b);
    return __hmin2_nan(__hmax2_nan(rounded, least), most);
}

__device__ __forceinline__ half2 least_of(int with_relu) {
    return __half2half2(__ushort_as_half(with_relu ? 0 : 0xfc00));  // 0 or -∞
}
#endif
