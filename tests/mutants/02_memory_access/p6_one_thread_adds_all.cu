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
    if (threadIdx.x == 0) {
        mine = 0;
        for (int k = 0; k < blockDim.x; k++)
            mine += part[k];
        atomicAdd(sum, mine);
    }
}
