// problem: kinds
// loses: kinds-atomics, kinds-budget
// reason: too many atomics
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int lane = 0; lane < 32; lane++)
        if (threadIdx.x % 32 == lane && i < n)
            atomicAdd(&counts[kind[i]], 1u);
}
