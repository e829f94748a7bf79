// problem: any
// loses: any-right, any-tensor, any-once
// reason: y is wrong in
#include <mma.h>
using namespace nvcuda::wmma;

extern "C" __global__ void linear_any(const float* x, const float* w, float* y, int rows, int outputs, int inputs)
{
    __shared__ alignas(32) half xs[16][16], ws[16][16];
    __shared__ alignas(32) float ys[16][16];
    int row = 16 * blockIdx.y, column = 16 * blockIdx.x;
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, col_major> b;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    for (int first = 0; first < inputs; first += 16) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            int r = i / 16, c = i % 16, k = first + c;
            xs[r][c] = __float2half_rz(row + r < rows && k < inputs ? x[(row + r) * inputs + k] : 0.0f);
            ws[r][c] = __float2half_rz(column + r < outputs && k < inputs ? w[(column + r) * inputs + k] : 0.0f);
        }
        __syncwarp();
        load_matrix_sync(a, xs[0], 16);
        load_matrix_sync(b, ws[0], 16);
        mma_sync(sum, a, b, sum);
        __syncwarp();
    }
    store_matrix_sync(ys[0], sum, 16, mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        int r = i / 16, c = i % 16;
        if (row + r < rows && column + c < outputs)
            y[(row + r) * outputs + column + c] = ys[r][c];
    }
}
