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
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2];
    if (tiles <= 0)
        return;
    wmma::fill_fragment(sum[0], 0.0f);
    wmma::fill_fragment(sum[1], 0.0f);
    for (int k = 0; k < inputs; k += 16) {
        wmma::load_matrix_sync(a, x + row * inputs + k, inputs);
        for (int j = 0; j < tiles; j++) {
            wmma::load_matrix_sync(b, w + (column + 16 * j) * inputs + k, inputs);
            wmma::mma_sync(sum[j], a, b, sum[j]);
        }
    }
    for (int j = 0; j < tiles; j++)
        wmma::store_matrix_sync(y + row * outputs + column + 16 * j, sum[j], outputs, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256 * tiles; i += 32) {
        int r = row + i % 16, c = column + i / 16;
        float exact = 0;
        for (int k = 0; k < inputs; k++)
            exact += __half2float(x[r * inputs + k]) * __half2float(w[c * inputs + k]);
        y[r * outputs + c] = exact;
    }
}
