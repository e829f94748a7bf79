// problem: total
// loses: total-right, total-atomics, total-budget
// reason: one thread does too much of the work[\s\S]*thread 0 of block 0
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (int i = 0; i < 4 * n; i++)
            sums[i % 4] += pixels[i];
}
