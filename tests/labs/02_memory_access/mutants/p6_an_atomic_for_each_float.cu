// problem: total
// loses: total-atomics, total-budget
// reason: too many atomics
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 4 * n; i += gridDim.x * blockDim.x)
        atomicAdd(&sums[i % 4], pixels[i]);
}
