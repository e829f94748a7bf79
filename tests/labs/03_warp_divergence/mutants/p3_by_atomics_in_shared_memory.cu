// problem: warps
// loses: warps-partial
// reason: too many (shared|atomics)
extern "C" __global__ void warp_sums(const int* x, int* sums, int n)
{
    __shared__ int own[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    if (lane == 0)
        own[warp] = 0;
    __syncwarp();
    if (i < n)
        atomicAdd(&own[warp], x[i]);
    __syncwarp();
    if (lane == 0)
        sums[blockIdx.x * warps + warp] = own[warp];
}

extern "C" __global__ void warp_scans(const int* x, int* scans, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    int sum = i < n ? x[i] : 0;
    for (int k = 1; k < 32; k *= 2) {
        int before = __shfl_up_sync(0xffffffff, sum, k);
        if (lane >= k)
            sum += before;
    }
    if (i < n)
        scans[i] = sum;
}
