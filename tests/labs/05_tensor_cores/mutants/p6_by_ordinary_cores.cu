// problem: relu
// loses: relu-right, relu-fragment, relu-tensor
// reason: too few tensor operations
#include <cuda_fp16.h>

__device__ void multiply_add(float* d, const unsigned* a, const unsigned* b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void relu_layer(const half* x, const half* w, const float* bias, half* y, int outputs, int inputs)
{
    int row = 16 * blockIdx.y;
    int column = 8 * blockIdx.x;
    for (int i = threadIdx.x; i < 128; i += 32) {
        int r = row + i / 8, c = column + i % 8;
        float exact = bias[c];
        for (int k = 0; k < inputs; k++)
            exact += __half2float(x[r * inputs + k]) * __half2float(w[c * inputs + k]);
        y[r * outputs + c] = __float2half(fmaxf(exact, 0.0f));
    }
}
