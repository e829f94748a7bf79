// problem: tiles
// loses: tiles-all
// reason: one thread does too much of the work
#include <cuda_fp16.h>

__device__ unsigned pair(half low, half high)
{
    return __half_as_ushort(low) | __half_as_ushort(high) << 16;
}

__device__ void multiply_add(float* d, const unsigned* a, const unsigned* b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void tiles(const half* a, const half* b, float* c, int n, int k)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    if (blockIdx.x)
        return;
    for (int left = 0; left < n; left += 8) {
    const half* x0 = a + 16 * blockIdx.y * k;
    const half* y0 = b + left;
    float* z0 = c + 16 * blockIdx.y * n + left;
    float sum[4] = {};
    for (int first = 0; first < k; first += 16) {
        unsigned x[4], y[2];
        for (int r = 0; r < 4; r++) {
            int row = g + 8 * (r % 2), column = first + 2 * t + 8 * (r / 2);
            x[r] = pair(x0[row * k + column], x0[row * k + column + 1]);
        }
        for (int r = 0; r < 2; r++) {
            int row = first + 2 * t + 8 * r, column = g;
            y[r] = pair(y0[row * n + column], y0[(row + 1) * n + column]);
        }
        multiply_add(sum, x, y);
    }
    for (int j = 0; j < 4; j++) {
        int row = g + 8 * (j / 2), column = 2 * t + j % 2;
        z0[row * n + column] = sum[j];
    }
    }
}
