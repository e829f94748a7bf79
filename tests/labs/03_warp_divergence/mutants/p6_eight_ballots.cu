// problem: kinds
// loses: kinds-budget
// reason: too many warp instructions
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
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
