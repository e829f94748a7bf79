// y = f(a), or f(a, b), element by element, wherever the elements of a and b lie: a transpose, a slice and an expansion
// are a copy with other strides, and what is broadcast has strides of 0. y lies row by row.
//
// T: float; of copies half, too.
// RANK: axes that are left when those are joined along which both go on evenly; most launches have one.
// Expected: the time of reading a and b and writing y once; a transpose reads an element of a sector each.
// Right on an H200 (2026-11-26); not timed there.
#include "functions.cuh"
#include <cuda_fp16.h>

constexpr int MOST_AXES = 6;

struct Elementwise {
    int elements;
    int extent[MOST_AXES], a[MOST_AXES], b[MOST_AXES];  // of y, and elements from one to the next
    int first;                                          // element of a
    float alpha, beta;
};

template <class F, int RANK, typename T>
__global__ void elementwise(const T *a, const T *b, T *y, Elementwise g) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.elements) return;
    int rest = i, of_a = g.first, of_b = 0;
#pragma unroll
    for (int axis = RANK - 1; axis > 0; axis--) {
        const int above = rest / g.extent[axis], k = rest - above * g.extent[axis];
        of_a += k * g.a[axis], of_b += k * g.b[axis], rest = above;
    }
    of_a += rest * g.a[0], of_b += rest * g.b[0];
    y[i] = F::of(a[of_a], b ? float(b[of_b]) : 0, g.alpha, g.beta);
}
