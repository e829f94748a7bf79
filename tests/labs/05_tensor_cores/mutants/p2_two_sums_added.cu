// problem: linear
// loses: linear-tensor, linear-reuse
// reason: too many FP32 operations
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void linear(const half* x, const half* w, float* y, int rows, int outputs, int inputs)
{
    int row = 16 * blockIdx.y, column = 128 * blockIdx.x + 32 * threadIdx.y;
    int tiles = min(2, (outputs - column) / 16);  // negative or 0 for a warp without work
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2], odd[2];
    if (tiles <= 0)
        return;
    wmma::fill_fragment(sum[0], 0.0f);
    wmma::fill_fragment(sum[1], 0.0f);
    wmma::fill_fragment(odd[0], 0.0f);
    wmma::fill_fragment(odd[1], 0.0f);
    for (int k = 0; k < inputs; k += 16) {
        wmma::load_matrix_sync(a, x + row * inputs + k, inputs);
        for (int j = 0; j < tiles; j++) {
            wmma::load_matrix_sync(b, w + (column + 16 * j) * inputs + k, inputs);
            if (k % 32)
                wmma::mma_sync(odd[j], a, b, odd[j]);
            else
                wmma::mma_sync(sum[j], a, b, sum[j]);
        }
    }
    for (int i = 0; i < odd[0].num_elements; i++) {
        sum[0].x[i] += odd[0].x[i];
        sum[1].x[i] += odd[1].x[i];
    }
    for (int j = 0; j < tiles; j++)
        wmma::store_matrix_sync(y + row * outputs + column + 16 * j, sum[j], outputs, wmma::mem_row_major);
}
