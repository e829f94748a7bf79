// Complex numbers of CuPy's kernels, complex<float> and complex<double>: those of libcu++, with the sums and products of
// mixed types that thrust's have.
#pragma once

#include <cuda/std/complex>
#include <cuda/std/type_traits>

namespace thrust {
using cuda::std::abs;
using cuda::std::acos;
using cuda::std::acosh;
using cuda::std::arg;
using cuda::std::asin;
using cuda::std::asinh;
using cuda::std::atan;
using cuda::std::atanh;
using cuda::std::complex;
using cuda::std::conj;
using cuda::std::cos;
using cuda::std::cosh;
using cuda::std::exp;
using cuda::std::imag;
using cuda::std::log;
using cuda::std::log10;
using cuda::std::norm;
using cuda::std::polar;
using cuda::std::pow;
using cuda::std::proj;
using cuda::std::real;
using cuda::std::sin;
using cuda::std::sinh;
using cuda::std::sqrt;
using cuda::std::tan;
using cuda::std::tanh;
}
using cuda::std::complex;  // its functions are found by their arguments
using cuda::std::polar;

#define WARPLAB_MIXED(OP)                                                                                  \
    template <typename T, typename U,                                                                      \
              typename = cuda::std::enable_if_t<cuda::std::is_arithmetic_v<U> && !cuda::std::is_same_v<T, U>>> \
    __device__ auto operator OP(const complex<T>& x, const U& y) {                                         \
        typedef decltype(T() + U()) Both;                                                                  \
        return complex<Both>(x) OP static_cast<Both>(y);                                                   \
    }                                                                                                      \
    template <typename T, typename U,                                                                      \
              typename = cuda::std::enable_if_t<cuda::std::is_arithmetic_v<U> && !cuda::std::is_same_v<T, U>>> \
    __device__ auto operator OP(const U& x, const complex<T>& y) {                                         \
        typedef decltype(T() + U()) Both;                                                                  \
        return static_cast<Both>(x) OP complex<Both>(y);                                                   \
    }
WARPLAB_MIXED(+)
WARPLAB_MIXED(-)
WARPLAB_MIXED(*)
WARPLAB_MIXED(/)

template <typename T> __device__ bool isnan(const complex<T>& x) { return isnan(x.real()) || isnan(x.imag()); }
template <typename T> __device__ bool isinf(const complex<T>& x) { return isinf(x.real()) || isinf(x.imag()); }
template <typename T> __device__ bool isfinite(const complex<T>& x) {
    return isfinite(x.real()) && isfinite(x.imag());
}
