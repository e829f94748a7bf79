// problem: total
// loses: total-budget
// reason: too many warp instructions
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    __shared__ float part[1024];
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 4 * n; i += gridDim.x * blockDim.x)
        mine += pixels[i];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 4; step < blockDim.x; step *= 2) {
        if (threadIdx.x % (2 * step) < 4 && threadIdx.x + step < blockDim.x)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x < 4)
        atomicAdd(&sums[threadIdx.x], part[threadIdx.x]);
}
