// What is computed of whole rows, a warp each: reductions, and the layer norm
// y = (x - mean) / √(variance + ε) * γ + β, whose mean and variance are the row's own.
// Expected: the time of reading x once (the layer norm: three times, from the cache where a row fits).
// Right on an H200 (2026-11-26); not timed there.
#include "functions.cuh"

constexpr int ROWS_OF_BLOCK = 4;

template <class F> __device__ __forceinline__ float joined(float value) {
    for (int step = 16; step > 0; step /= 2) value = F::join(value, __shfl_xor_sync(0xffffffff, value, step));
    return value;
}

template <class F> __global__ void reduce(const float *x, float *y, int rows, int columns) {
    const int row = blockIdx.x * ROWS_OF_BLOCK + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += size_t(row) * columns;
    float value = F::start();
    for (int i = lane; i < columns; i += 32) value = F::join(value, x[i]);
    value = joined<F>(value);
    if (lane == 0) y[row] = F::end(value, columns);
}

extern "C" __global__ void layer_norm(const float *x, const float *gamma, const float *beta, float *y, int rows,
                                      int columns, float epsilon) {
    const int row = blockIdx.x * ROWS_OF_BLOCK + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += size_t(row) * columns;
    y += size_t(row) * columns;
    float sum = 0, squares = 0;
    for (int i = lane; i < columns; i += 32) sum += x[i];
    const float mean = joined<of::reduce_sum>(sum) / columns;
    for (int i = lane; i < columns; i += 32) squares += (x[i] - mean) * (x[i] - mean);
    const float factor = rsqrtf(joined<of::reduce_sum>(squares) / columns + epsilon);
    for (int i = lane; i < columns; i += 32) y[i] = (x[i] - mean) * factor * gamma[i] + beta[i];
}
