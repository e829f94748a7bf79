// pow of other numbers than CUDA's own declarations take without doubt, in double precision, as nvcc's headers have it.
#pragma once
template <class T> struct warplab_number {};
#define WARPLAB_NUMBER(T) template <> struct warplab_number<T> { typedef double type; };
#define WARPLAB_INTEGER(T) WARPLAB_NUMBER(T) WARPLAB_NUMBER(unsigned T)
WARPLAB_INTEGER(char) WARPLAB_INTEGER(short) WARPLAB_INTEGER(int) WARPLAB_INTEGER(long) WARPLAB_INTEGER(long long)
WARPLAB_NUMBER(signed char) WARPLAB_NUMBER(bool) WARPLAB_NUMBER(float) WARPLAB_NUMBER(double)
template <class T, class U, class X = typename warplab_number<T>::type, class Y = typename warplab_number<U>::type>
__device__ X pow(T x, U y) { return pow((X)x, (Y)y); }
