// problem: kinds
// loses: kinds-right, kinds-atomics, kinds-budget
// reason: one thread does too much of the work
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 32)
        return;
    for (int k = 0; k < 8; k++) {
        unsigned alike = 0;
        for (int i = first; i < min(n, first + 32); i++)
            alike += kind[i] == k;
        if (alike)
            atomicAdd(&counts[k], alike);
    }
}
