// problem: kinds
// loses: kinds-atomics, kinds-budget
// reason: too many (shared|atomics)
extern "C" __global__ void count_kinds(const int* kind, unsigned* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned own[8];
    if (threadIdx.x < 8)
        own[threadIdx.x] = 0;
    __syncthreads();
    if (i < n)
        atomicAdd(&own[kind[i]], 1u);
    __syncthreads();
    if (threadIdx.x < 8)
        atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}
