// problem: total
// loses: total-atomics, total-budget
// reason: too many atomics(.|\n)*at most 1\n(.|\n)*got +8\n
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 4 * n; i += gridDim.x * blockDim.x)
        mine += pixels[i];
    for (int step = 16; step >= 4; step /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, step);
    if (threadIdx.x % 32 < 4)
        atomicAdd(&sums[threadIdx.x % 32], mine);
}
