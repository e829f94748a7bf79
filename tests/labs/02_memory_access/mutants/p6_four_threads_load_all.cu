// problem: total
// loses: total-right, total-atomics, total-budget
// reason: one thread does too much of the work
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    float mine = 0;
    if (blockIdx.x == 0 && threadIdx.x < 4) {
        for (int i = threadIdx.x; i < 4 * n; i += 4)
            mine += pixels[i];
        atomicAdd(&sums[threadIdx.x], mine);
    }
}
