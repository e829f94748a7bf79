// Copies two matrices of float16 to wider rows, which TMA can copy: a thread fills 16 bytes, with zeros beyond the last
// column.
#include "words.cuh"

struct Matrix {
    const half *from;
    uint4 *to;
    int rows, columns, wide;  // wide: of a row of `to`, in 16 bytes; no rows for a matrix that stays as it is
};

__device__ __forceinline__ void pad(const Matrix &matrix) {
    const long long all = (long long)matrix.rows * matrix.wide, step = gridDim.x * 256ll;
    const half *const end = matrix.from + (long long)matrix.rows * matrix.columns;
#pragma unroll 4
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < all; i += step) {
        const unsigned row = all < 1ll << 32 ? unsigned(i) / matrix.wide : i / matrix.wide;
        const int column = int(i - (long long)row * matrix.wide) * 8;
        matrix.to[i] = eight(matrix.from + (long long)row * matrix.columns + column, matrix.columns - column, end);
    }
}

extern "C" __global__ void __launch_bounds__(256) tensor_core_pad(const Matrix a, const Matrix b) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");  // the product may get ready
    pad(a);
    pad(b);
}
