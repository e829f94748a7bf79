// problem: kinds
// loses: kinds-right, kinds-atomics, kinds-budget
// reason: counts is wrong in
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned lanes = __ballot_sync(0xffffffff, i < n);
    if (i < n) {
        int own = kind[i];
        unsigned alike = __match_any_sync(lanes, own);
        if (threadIdx.x % 32 == __ffs(alike))
            atomicAdd(&counts[own], __popc(alike));
    }
}
