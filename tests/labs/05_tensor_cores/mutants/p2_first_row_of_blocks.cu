// problem: linear
// loses: linear-right, linear-tensor, linear-reuse
// reason: one thread does too much of the work
#include <mma.h>
using namespace nvcuda::wmma;

extern "C" __global__ void linear(const half* x, const half* w, float* y, int rows, int outputs, int inputs)
{
    if (blockIdx.y)
        return;
    for (int row = 0; row < rows; row += 16) {
    int column = 128 * blockIdx.x + 32 * threadIdx.y;
    int tiles = min(2, (outputs - column) / 16);  // negative or 0 for a warp without work
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, col_major> b;
    fragment<accumulator, 16, 16, 16, float> sum[2];
    if (tiles <= 0)
        return;
    fill_fragment(sum[0], 0.0f);
    fill_fragment(sum[1], 0.0f);
    for (int k = 0; k < inputs; k += 16) {
        load_matrix_sync(a, x + row * inputs + k, inputs);
        for (int j = 0; j < tiles; j++) {
            load_matrix_sync(b, w + (column + 16 * j) * inputs + k, inputs);
            mma_sync(sum[j], a, b, sum[j]);
        }
    }
    for (int j = 0; j < tiles; j++)
        store_matrix_sync(y + row * outputs + column + 16 * j, sum[j], outputs, mem_row_major);
    }
}
