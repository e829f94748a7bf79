// problem: warps
// loses: warps-partial
// reason: lane 0 the value of lane 16, which its warp does not have, and the result depends on it
extern "C" __global__ void warp_sums(const int* x, int* sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    int lanes = min(32, blockDim.x - 32 * warp);
    int sum = i < n ? x[i] : 0;
    for (int k = 16; k > 0; k /= 2) {
        int other = __shfl_down_sync(0xffffffff, sum, k);
        sum += other;
    }
    if (lane == 0)
        sums[blockIdx.x * warps + warp] = sum;
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
