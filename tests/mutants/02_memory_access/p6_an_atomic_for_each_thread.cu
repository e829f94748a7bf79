// problem: total
// loses: total-atomics, total-budget
// reason: too many atomics
extern "C" __global__ void total(const float* a, float* sum, int n)
{
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += a[i];
    atomicAdd(sum, mine);
}
