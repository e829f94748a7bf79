// problem: linear
// loses: linear-tensor, linear-reuse
// reason: another kind
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void linear(const half* x, const half* w, float* y, int rows, int outputs, int inputs)
{
    int row = 16 * blockIdx.y, column = 128 * blockIdx.x + 32 * threadIdx.y;
    wmma::fragment<wmma::matrix_a, 8, 32, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 8, 32, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 8, 32, 16, float> sum[2];
    __shared__ alignas(32) half ws[4][32][16];
    __shared__ alignas(32) float ys[4][8][32];
    if (column >= outputs)
        return;
    wmma::fill_fragment(sum[0], 0.0f);
    wmma::fill_fragment(sum[1], 0.0f);
    for (int k = 0; k < inputs; k += 16) {
        for (int i = 0; i < 16; i++)
            ws[threadIdx.y][threadIdx.x][i] =
                column + threadIdx.x < outputs ? w[(column + threadIdx.x) * inputs + k + i] : half(0.0f);
        __syncwarp();
        wmma::load_matrix_sync(b, ws[threadIdx.y][0], 16);
        __syncwarp();
        for (int j = 0; j < 2; j++) {
            wmma::load_matrix_sync(a, x + (row + 8 * j) * inputs + k, inputs);
            wmma::mma_sync(sum[j], a, b, sum[j]);
        }
    }
    for (int j = 0; j < 2; j++) {
        wmma::store_matrix_sync(ys[threadIdx.y][0], sum[j], 32, wmma::mem_row_major);
        __syncwarp();
        for (int i = 0; i < 8; i++)
            if (column + threadIdx.x < outputs)
                y[(row + 8 * j + i) * outputs + column + threadIdx.x] = ys[threadIdx.y][i][threadIdx.x];
        __syncwarp();
    }
}
