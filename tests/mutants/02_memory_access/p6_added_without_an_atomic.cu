// problem: total
// loses: total-right, total-atomics, total-budget
// reason: no atomic operation
extern "C" __global__ void total(const float* a, float* sum, int n)
{
    __shared__ float part[32];
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += a[i];
    for (int step = 16; step > 0; step /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
        for (int step = 16; step > 0; step /= 2)
            mine += __shfl_down_sync(0xffffffff, mine, step);
        if (threadIdx.x == 0)
            *sum += mine;
    }
}
