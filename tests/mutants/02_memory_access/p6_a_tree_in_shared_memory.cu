// problem: total
// loses: total-budget
// reason: too many warp instructions
extern "C" __global__ void total(const float* a, float* sum, int n)
{
    __shared__ float part[1024];
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += a[i];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        if (threadIdx.x % (2 * step) == 0 && threadIdx.x + step < blockDim.x)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(sum, part[0]);
}
