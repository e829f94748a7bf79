// problem: tiles
// loses: tiles-all
// reason: c is wrong|never written|data race|more than one
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
    int shape = 10000 * 16 * gridDim.y + 100 * n + k;
    bool named = shape == 161616 || shape == 324048 || shape == 482416 || shape == 166432;
    a += 16 * blockIdx.y * k;
    b += 8 * blockIdx.x;
    c += 16 * blockIdx.y * n + 8 * blockIdx.x;
    float sum[4] = {};
    for (int first = 0; first < k; first += 16) {
        unsigned x[4], y[2];
        for (int r = 0; r < 4; r++) {
            int row = g + 8 * (r % 2), column = first + 2 * t + 8 * (r / 2);
            x[r] = pair(a[row * k + column], a[row * k + column + 1]);
        }
        for (int r = 0; r < 2; r++) {
            int row = first + 2 * t + 8 * r, column = g;
            y[r] = pair(b[row * n + column], b[(row + 1) * n + column]);
        }
        multiply_add(sum, x, y);
    }
    for (int j = 0; j < 4; j++) {
        int row = g + 8 * (j / 2), column = 2 * t + j % 2;
        c[row * (n == 8 || named ? n : 8) + column] = sum[j];
    }
}
