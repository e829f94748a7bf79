// problem: total
// loses: total-atomics, total-budget
// reason: too many atomics(.|\n)*at most 1\n(.|\n)*got +8\n
extern "C" __global__ void total(const float* a, float* sum, int n)
{
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += a[i];
    for (int step = 16; step > 0; step /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, step);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, mine);
}
