// 1. Tensor cores through nvcuda::wmma: one warp per 16 × 16 tile of C = A · B, operands straight from global memory.
// a is m × k, b is k × n, c is m × n, row-major; a and b float16, sums float32, c float32 or float16. m, n and k are
// multiples of 16 and the arrays start at multiples of 32 bytes: `multiply` pads what does not fit.
// Expected: 1024 bytes for 8192 operations, 8 per byte, nearly all from the L2 cache. If that gives 5 TB/s, 40 TFLOP/s,
// a twenty-fifth of what the tensor cores of an H100 can do: they wait. Rows of 32 bytes come in two halves, so the L1
// cache serves each sector twice.
// Reached: 22.1 TFLOP/s, 0.0292 of the library: 2.8 TB/s. ncu: the L2 cache brings 3.5 TB/s in all, and the pipe of the
// L1 cache is busy for 75 % of the time, with 4 bytes per lane.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

constexpr int TILE = 16;

// Writes a tile. The fragments of both result types hold the same elements in the same places on every GPU so far,
// though CUDA's documentation does not promise it.
using Sum = wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float>;

__device__ __forceinline__ void store(float *c, int n, const Sum &sum) {
    wmma::store_matrix_sync(c, sum, n, wmma::mem_row_major);
}

__device__ __forceinline__ void store(half *c, int n, const Sum &sum) {
    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, half> rounded;
#pragma unroll
    for (int i = 0; i < rounded.num_elements; i++) {
        rounded.x[i] = __float2half(sum.x[i]);
    }
    wmma::store_matrix_sync(c, rounded, n, wmma::mem_row_major);
}

template <typename T>
__global__ void __launch_bounds__(32) tensor_core_wmma(const half *a, const half *b, T *c, int m, int n, int k) {
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, half, wmma::row_major> of_a;
    wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, half, wmma::row_major> of_b;
    Sum sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int start = 0; start < k; start += TILE) {
        wmma::load_matrix_sync(of_a, a + size_t(row) * k + start, k);
        wmma::load_matrix_sync(of_b, b + size_t(start) * n + column, n);
        wmma::mma_sync(sum, of_a, of_b, sum);
    }
    store(c + size_t(row) * n + column, n, sum);
}
