// problem: kinds
// loses: kinds-right, kinds-atomics, kinds-budget
// reason: one thread does too much of the work
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    if (blockIdx.x || threadIdx.x)
        return;
    for (int i = 0; i < n; i++)
        counts[kind[i]]++;
}
