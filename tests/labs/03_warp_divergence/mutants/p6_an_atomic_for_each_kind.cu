// problem: kinds
// loses: kinds-atomics, kinds-budget
// reason: too many atomics
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int own = i < n ? kind[i] : 8;
    for (int k = 0; k < 8; k++) {
        unsigned votes = __ballot_sync(0xffffffff, own == k);
        if (threadIdx.x % 32 == k && votes)
            atomicAdd(&counts[k], __popc(votes));
    }
}
