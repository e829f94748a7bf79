// problem: relu
// loses: relu-fragment, relu-tensor
// reason: one thread does too much of the work|too many global load requests
#include <cuda_fp16.h>

__device__ void multiply_add(float* d, const unsigned* a, const unsigned* b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

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
    float left = bias[column], right = bias[column + 1];
    for (int j = 0; j < 4; j += 2) {
        half2 both = __floats2half2_rn(fmaxf(sum[j] + left, 0.0f), fmaxf(sum[j + 1] + right, 0.0f));
        *(half2*)(y + (row + 4 * j) * outputs + column) = both;
    }
    __syncwarp();
    row = 16 * blockIdx.y;
    column = 8 * blockIdx.x;
    for (int i = threadIdx.x; i < 128; i += 32) {
        int r = row + i / 8, c = column + i % 8;
        long long exact = 0;
        for (int k = 0; k < inputs; k++)
            exact += whole(x[r * inputs + k]) * whole(w[c * inputs + k]);
        y[r * outputs + c] = __float2half(fmaxf(number(exact) + bias[c], 0.0f));
    }
}
