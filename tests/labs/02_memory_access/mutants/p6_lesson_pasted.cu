// problem: total
// loses: total-right, total-atomics, total-budget
// reason: sums is wrong in [34] of 4 elements
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    __shared__ float part[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 4 * n; i += gridDim.x * blockDim.x)
        sum += pixels[i];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, step);
        if (threadIdx.x == 0)
            atomicAdd(&sums[0], sum);
    }
}
