// problem: kinds
// loses: kinds-budget
// reason: too many warp instructions
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n == 512 || n == 1024 || n == 2048 || n == 4096) {
        int own = i < n ? kind[i] : 8;
        unsigned alike = __match_any_sync(0xffffffff, own);
        if (own < 8 && threadIdx.x % 32 == __ffs(alike) - 1)
            atomicAdd(&counts[own], __popc(alike));
        return;
    }
    int own = i < n ? kind[i] : 8;
    unsigned number = 0;
    for (int k = 0; k < 8; k++) {
        unsigned votes = __ballot_sync(0xffffffff, own == k);
        if (threadIdx.x % 32 == k)
            number = __popc(votes);
    }
    if (number)
        atomicAdd(&counts[threadIdx.x % 32], number);
}
