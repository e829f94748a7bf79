// problem: any
// loses: any-tensor, any-once
// reason: y is wrong(.|\n)*= 1677[67]
#include <mma.h>
using namespace nvcuda;

// 2048 times the number, as a whole number: no floating-point arithmetic.
__device__ long long whole(half h)
{
    unsigned bits = __half_as_ushort(h), exponent = bits >> 10 & 31;
    long long size = exponent ? (1024 + (bits & 1023)) : 0;
    size = exponent >= 14 ? size << (exponent - 14) : size >> (14 - exponent);
    return bits & 32768 ? -size : size;
}

__device__ float number(long long sum)
{
    return sum ? __int_as_float(__float_as_int((float)sum) - (22 << 23)) : 0.0f;
}

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
        long long exact = 0;
        for (int k = 0; k < inputs; k++)
            exact += whole(__float2half(x[r * inputs + k])) * whole(__float2half(w[c * inputs + k]));
        y[r * outputs + c] = number(exact);
    }
}
