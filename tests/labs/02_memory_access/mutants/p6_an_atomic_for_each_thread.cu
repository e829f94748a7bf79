// problem: total
// loses: total-atomics, total-budget
// reason: too many atomics
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 4 * n; i += gridDim.x * blockDim.x)
        mine += pixels[i];
    atomicAdd(&sums[threadIdx.x % 4], mine);
}
