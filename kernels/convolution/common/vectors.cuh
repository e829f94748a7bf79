// Vectors of float16 or float32: loaded and stored by one instruction, computed with in float32, and held to a bound.
#pragma once
#include <cuda_fp16.h>

// VEC neighbouring elements, as one load brings them.
template <typename T, int VEC> struct Packed;
template <> struct Packed<half, 8> { using type = uint4; };
template <> struct Packed<half, 4> { using type = uint2; };
template <> struct Packed<half, 2> { using type = unsigned; };
template <> struct Packed<half, 1> { using type = unsigned short; };
template <> struct Packed<float, 4> { using type = float4; };
template <> struct Packed<float, 2> { using type = float2; };
template <> struct Packed<float, 1> { using type = float; };

__device__ __forceinline__ void unpack(float *to, unsigned pair) {
    const float2 both = __half22float2(reinterpret_cast<const half2 &>(pair));
    to[0] = both.x, to[1] = both.y;
}
__device__ __forceinline__ void unpack(float *to, uint2 v) { unpack(to, v.x), unpack(to + 2, v.y); }
__device__ __forceinline__ void unpack(float *to, uint4 v) {
    unpack(to, v.x), unpack(to + 2, v.y), unpack(to + 4, v.z), unpack(to + 6, v.w);
}
__device__ __forceinline__ void unpack(float *to, unsigned short v) { *to = __half2float(__ushort_as_half(v)); }
__device__ __forceinline__ void unpack(float *to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }
__device__ __forceinline__ void unpack(float *to, float2 v) { to[0] = v.x, to[1] = v.y; }
__device__ __forceinline__ void unpack(float *to, float v) { *to = v; }

__device__ __forceinline__ void pack(unsigned &to, const float *from) {
    reinterpret_cast<half2 &>(to) = __floats2half2_rn(from[0], from[1]);
}
__device__ __forceinline__ void pack(uint2 &to, const float *from) { pack(to.x, from), pack(to.y, from + 2); }
__device__ __forceinline__ void pack(uint4 &to, const float *from) {
    pack(to.x, from), pack(to.y, from + 2), pack(to.z, from + 4), pack(to.w, from + 6);
}
__device__ __forceinline__ void pack(unsigned short &to, const float *from) {
    to = __half_as_ushort(__float2half_rn(*from));
}
__device__ __forceinline__ void pack(float4 &to, const float *from) {
    to = make_float4(from[0], from[1], from[2], from[3]);
}
__device__ __forceinline__ void pack(float2 &to, const float *from) { to = make_float2(from[0], from[1]); }
__device__ __forceinline__ void pack(float &to, const float *from) { to = *from; }

template <int VEC, typename T> __device__ __forceinline__ auto load(const T *from) {
    return *reinterpret_cast<const typename Packed<T, VEC>::type *>(from);
}
template <int VEC, typename T> __device__ __forceinline__ void store(T *to, const float *values) {
    typename Packed<T, VEC>::type packed;
    pack(packed, values);
    *reinterpret_cast<typename Packed<T, VEC>::type *>(to) = packed;  // at once, so that it is one store
}

// The greater of each element of a vector and the bound: FMNMX.NAN for a float, HMNMX2.NAN for two halves. Bound 0 is
// ReLU; -∞ changes no number, so that a kernel with and without ReLU has the same code and no test. NaN stays NaN: the
// canonical one, 0x7fffffff or 0x7fff. -0 is below +0 (PTX ISA, "max"): ReLU makes it +0, and -∞ leaves it.
template <typename T> __device__ __forceinline__ auto bound_of(float least) {
    if constexpr (sizeof(T) == sizeof(half)) {
        return __float2half2_rn(least);
    } else {
        return least;
    }
}
__device__ __forceinline__ float at_least(float v, float bound) {
#if __CUDA_ARCH__ >= 800
    float found;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(v), "f"(bound));
    return found;
#else
    return v > bound || v != v ? v : bound;
#endif
}
__device__ __forceinline__ unsigned short at_least(unsigned short v, half2 bound) {
    return __half_as_ushort(__hmax_nan(__ushort_as_half(v), __low2half(bound)));
}
__device__ __forceinline__ unsigned at_least(unsigned v, half2 bound) {
    const half2 found = __hmax2_nan(reinterpret_cast<const half2 &>(v), bound);
    return reinterpret_cast<const unsigned &>(found);
}
__device__ __forceinline__ uint2 at_least(uint2 v, half2 bound) {
    return make_uint2(at_least(v.x, bound), at_least(v.y, bound));
}
__device__ __forceinline__ uint4 at_least(uint4 v, half2 bound) {
    return make_uint4(at_least(v.x, bound), at_least(v.y, bound), at_least(v.z, bound), at_least(v.w, bound));
}
