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
    if (threadIdx.x < 4) {
        mine = 0;
        for (int k = threadIdx.x; k < blockDim.x; k += 4)
            mine += part[k];
        atomicAdd(&sums[threadIdx.x], mine);
    }
}
