// problem: relu
// loses: relu-fragment
// reason: one thread does too much of the work|too many global (load|store) requests
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
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    int row = 16 * blockIdx.y + g, column = 8 * blockIdx.x + 2 * t;
    const unsigned* upper = (const unsigned*)(x + row * inputs) + t;  // each points to pairs of halves
    const unsigned* lower = (const unsigned*)(x + (row + 8) * inputs) + t;
    const unsigned* weights = (const unsigned*)(w + (8 * blockIdx.x + g) * inputs) + t;
    float sum[4] = {};
    for (int k = 0; k < inputs / 2; k += 8) {
        unsigned a[4] = {upper[k], lower[k], upper[k + 4], lower[k + 4]};
        unsigned b[2] = {weights[k], weights[k + 4]};
        multiply_add(sum, a, b);
    }
    for (int j = 0; j < 4; j += 2)
        *(half2*)(y + (row + 4 * j) * outputs + column) = __floats2half2_rn(
            fmaxf(sum[j] + bias[column], 0.0f), fmaxf(sum[j + 1] + bias[column + 1], 0.0f));
    for (int j = 0; j < 4; j += 2) {
        volatile unsigned* two = (volatile unsigned*)(y + (row + 4 * j) * outputs + column);
        *two = *two;
    }
}
