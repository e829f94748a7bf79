// problem: total
// loses: total-right, total-atomics, total-budget
// reason: one thread does too much of the work[\s\S]*of block 0
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    __shared__ float part[32][4];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (blockIdx.x)
        return;
    float mine = 0;
    for (int i = threadIdx.x; i < 4 * n; i += blockDim.x)
        mine += pixels[i];
    for (int step = 16; step >= 4; step /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, step);
    if (lane < 4)
        part[warp][lane] = mine;
    __syncthreads();
    if (threadIdx.x < 4) {
        for (int w = 1; w < blockDim.x / 32; w++)
            mine += part[w][lane];
        atomicAdd(&sums[lane], mine);
    }
}
