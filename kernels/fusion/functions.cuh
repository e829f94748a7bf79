// Functions of one element, of two, or of a row, named as in graph/functions.py, which says what they are.
#pragma once
#include <math_constants.h>

namespace of {

// Functions of one element leave b alone, functions of two alpha and beta.
#define ELEMENTS(name, value)                                                                        \
    struct name {                                                                                    \
        __device__ __forceinline__ static float of(float a, float b, float alpha, float beta) {      \
            return value;                                                                            \
        }                                                                                            \
    };

__device__ __forceinline__ float logistic(float x) { return 1 / (1 + expf(-x)); }
__device__ __forceinline__ float exponential(float x, float alpha) { return x < 0 ? alpha * expm1f(x) : x; }
// A NaN stays one, on either side.
__device__ __forceinline__ float smaller(float a, float b) { return a < b || a != a ? a : b; }
__device__ __forceinline__ float larger(float a, float b) { return a > b || a != a ? a : b; }

ELEMENTS(copy, a)
ELEMENTS(abs, fabsf(a))
ELEMENTS(ceil, ceilf(a))
ELEMENTS(cos, cosf(a))
ELEMENTS(erf, erff(a))
ELEMENTS(exp, expf(a))
ELEMENTS(floor, floorf(a))
ELEMENTS(log, logf(a))
ELEMENTS(neg, -a)
ELEMENTS(reciprocal, 1 / a)
ELEMENTS(round, rintf(a))
ELEMENTS(sigmoid, logistic(a))
ELEMENTS(sign, a > 0 ? 1 : a < 0 ? -1 : a)
ELEMENTS(sin, sinf(a))
ELEMENTS(softplus, fmaxf(a, 0) + log1pf(expf(-fabsf(a))))
ELEMENTS(sqrt, sqrtf(a))
ELEMENTS(tanh, tanhf(a))
ELEMENTS(hard_swish, a *smaller(larger(a / 6 + 0.5f, 0), 1))
ELEMENTS(gelu, a / 2 * (1 + erff(a * 0.70710678f)))
ELEMENTS(gelu_tanh, a / 2 * (1 + tanhf(0.79788456f * (a + 0.044715f * a * a * a))))
ELEMENTS(swish, a *logistic(alpha *a))
ELEMENTS(elu, exponential(a, alpha))
ELEMENTS(leaky_relu, a < 0 ? alpha * a : a)
ELEMENTS(thresholded_relu, a > alpha ? a : 0)
ELEMENTS(selu, beta *exponential(a, alpha))
ELEMENTS(hard_sigmoid, smaller(larger(alpha *a + beta, 0), 1))
ELEMENTS(fake_quantise, fminf(fmaxf(rintf(a / alpha), -127), 127) * alpha)
ELEMENTS(clip, smaller(larger(a, alpha), beta))

ELEMENTS(add, a + b)
ELEMENTS(sub, a - b)
ELEMENTS(mul, a *b)
ELEMENTS(div, a / b)
ELEMENTS(min, b != b ? b : smaller(a, b))
ELEMENTS(max, b != b ? b : larger(a, b))
ELEMENTS(pow, powf(a, b))
ELEMENTS(prelu, a < 0 ? b * a : a)

#define ROWS(name, first, joined, result)                                                            \
    struct name {                                                                                    \
        __device__ __forceinline__ static float start() { return first; }                            \
        __device__ __forceinline__ static float join(float a, float b) { return joined; }            \
        __device__ __forceinline__ static float end(float a, int columns) { return result; }         \
    };

ROWS(reduce_sum, 0, a + b, a)
ROWS(reduce_mean, 0, a + b, a / columns)
ROWS(reduce_max, -CUDART_INF_F, max::of(a, b, 0, 0), a)
ROWS(reduce_min, CUDART_INF_F, min::of(a, b, 0, 0), a)
ROWS(reduce_prod, 1, a *b, a)

}  // namespace of
