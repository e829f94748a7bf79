// problem: any
// loses: any-tensor, any-once
// reason: too many FP32 operations
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void linear_any(const float* x, const float* w, float* y, int rows, int outputs, int inputs)
{
    __shared__ alignas(32) half xs[16][16], ws[16][16];
    __shared__ alignas(32) float ys[16][16];
    int row = 16 * blockIdx.y, column = 16 * blockIdx.x;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int first = 0; first < inputs; first += 16) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            int r = i / 16, c = i % 16, k = first + c;
            xs[r][c] = __float2half(row + r < rows && k < inputs ? x[(row + r) * inputs + k] : 0.0f);
            ws[r][c] = __float2half(column + r < outputs && k < inputs ? w[(column + r) * inputs + k] : 0.0f);
        }
        __syncwarp();
        wmma::load_matrix_sync(a, xs[0], 16);
        wmma::load_matrix_sync(b, ws[0], 16);
        wmma::mma_sync(sum, a, b, sum);
        __syncwarp();
    }
    wmma::store_matrix_sync(ys[0], sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        int r = i / 16, c = i % 16;
        if (row + r < rows && column + c < outputs)
            y[(row + r) * outputs + column + c] = ys[r][c];
    }
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        int r = row + i / 16, c = column + i % 16;
        if (r >= rows || c >= outputs)
            continue;
        float exact = 0;
        for (int k = 0; k < inputs; k++)
            exact += __half2float(__float2half(x[r * inputs + k])) * __half2float(__float2half(w[c * inputs + k]));
        y[r * outputs + c] = exact;
    }
}
