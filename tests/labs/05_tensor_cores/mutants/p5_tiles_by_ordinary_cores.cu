// problem: tiles
// loses: tiles-one, tiles-all
// reason: the tensor cores do nothing
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
    a += 16 * blockIdx.y * k;
    b += 8 * blockIdx.x;
    c += 16 * blockIdx.y * n + 8 * blockIdx.x;
    for (int i = threadIdx.x; i < 128; i += 32) {
        float exact = 0;
        for (int s = 0; s < k; s++)
            exact += __half2float(a[i / 8 * k + s]) * __half2float(b[s * n + i % 8]);
        c[i / 8 * n + i % 8] = exact;
    }
}
