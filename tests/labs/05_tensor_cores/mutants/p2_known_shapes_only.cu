// problem: linear
// loses: linear-reuse
// reason: too many global load bytes
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void linear(const half* x, const half* w, float* y, int rows, int outputs, int inputs)
{
    int row = 16 * blockIdx.y, column = 128 * blockIdx.x + 32 * threadIdx.y;
    int tiles = min(2, (outputs - column) / 16);  // negative or 0 for a warp without work
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2];
    int shape = 100000 * rows + 100 * outputs + inputs;
    bool named = shape == 1603232 || shape == 3214416 || shape == 4806416 || shape == 1611232;
    if (tiles <= 0)
        return;
    wmma::fill_fragment(sum[0], 0.0f);
    wmma::fill_fragment(sum[1], 0.0f);
    for (int k = 0; k < inputs; k += 16) {
        for (int j = 0; j < tiles; j++) {
            if (j == 0 || !named)
                wmma::load_matrix_sync(a, x + row * inputs + k, inputs);
            wmma::load_matrix_sync(b, w + (column + 16 * j) * inputs + k, inputs);
            wmma::mma_sync(sum[j], a, b, sum[j]);
        }
    }
    for (int j = 0; j < tiles; j++)
        wmma::store_matrix_sync(y + row * outputs + column + 16 * j, sum[j], outputs, wmma::mem_row_major);
}
