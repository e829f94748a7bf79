// problem: kinds
// loses: kinds-atomics, kinds-budget
// reason: too many global atomic sectors
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&counts[kind[i]], 1u);
}
