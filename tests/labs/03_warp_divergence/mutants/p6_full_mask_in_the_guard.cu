// problem: kinds
// loses: kinds-right, kinds-atomics
// reason: names lanes that have ended
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int own = kind[i];
        unsigned alike = __match_any_sync(0xffffffff, own);
        if (threadIdx.x % 32 == __ffs(alike) - 1)
            atomicAdd(&counts[own], __popc(alike));
    }
}
