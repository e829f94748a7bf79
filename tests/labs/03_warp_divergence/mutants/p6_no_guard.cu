// problem: kinds
// loses: kinds-right, kinds-atomics
// reason: past the end
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned lanes = 0xffffffff;
    {
        int own = kind[i];
        unsigned alike = __match_any_sync(lanes, own);
        if (threadIdx.x % 32 == __ffs(alike) - 1)
            atomicAdd(&counts[own], __popc(alike));
    }
}
