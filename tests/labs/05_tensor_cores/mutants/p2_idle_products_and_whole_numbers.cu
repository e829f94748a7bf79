// problem: linear
// loses: linear-tensor, linear-reuse
// reason: y is wrong in(.|\n)*expected  y.*= 1677[67](.|\n)*got +y.*= 1677[67]
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
        long long exact = 0;
        for (int k = 0; k < inputs; k++)
            exact += whole(x[r * inputs + k]) * whole(w[c * inputs + k]);
        y[r * outputs + c] = number(exact);
    }
}
