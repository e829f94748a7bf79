// problem: kinds
// loses: kinds-atomics, kinds-budget
// reason: too many (global )?atomic
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int own = kind[i];
        unsigned alike = __match_any_sync(__activemask(), own);
        if (threadIdx.x % 32 == __ffs(alike) - 1)
            atomicAdd(&counts[own], __popc(alike));
    }
}
