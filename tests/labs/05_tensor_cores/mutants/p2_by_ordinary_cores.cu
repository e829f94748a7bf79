// problem: linear
// loses: linear-right, linear-tensor, linear-reuse
// reason: too few tensor operations(.|\n)*ordinary cores
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void linear(const half* x, const half* w, float* y, int rows, int outputs, int inputs)
{
    int row = 16 * blockIdx.y, column = 128 * blockIdx.x + 32 * threadIdx.y;
    int tiles = min(2, (outputs - column) / 16);  // negative or 0 for a warp without work
    if (tiles <= 0)
        return;
    for (int i = threadIdx.x; i < 256 * tiles; i += 32) {
        int r = row + i % 16, c = column + i / 16;
        float exact = 0;
        for (int k = 0; k < inputs; k++)
            exact += __half2float(x[r * inputs + k]) * __half2float(w[c * inputs + k]);
        y[r * outputs + c] = exact;
    }
}
