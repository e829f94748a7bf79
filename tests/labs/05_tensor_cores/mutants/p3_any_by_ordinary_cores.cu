// problem: any
// loses: any-right, any-tensor, any-once
// reason: too few tensor operations
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void linear_any(const float* x, const float* w, float* y, int rows, int outputs, int inputs)
{
    int row = 16 * blockIdx.y, column = 16 * blockIdx.x;
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
