// Variables that host and kernels share: a number, an array whose address is an argument, one in a namespace.
#include <cstdio>

__managed__ int calls = 3;
__device__ __managed__ float values[256];

namespace own {
static __managed__ unsigned long long total, untouched = 9;
}

__global__ void add(const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) calls++;
    if (i < n) atomicAdd(&own::total, (unsigned long long)x[i]);
}

int main() {
    for (int i = 0; i < 256; i++) values[i] = i;
    add<<<2, 128>>>(values, 256);
    cudaDeviceSynchronize();
    printf("%d %llu\n", calls, own::total);
    calls = 10;
    values[255] = 0;
    add<<<1, 128>>>(values + 128, 128);
    cudaDeviceSynchronize();
    printf("%d %llu %llu\n", calls, own::total, own::untouched);
}
