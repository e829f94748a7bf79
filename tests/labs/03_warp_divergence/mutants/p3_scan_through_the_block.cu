// problem: warps
// loses: warps-scans
// reason: too many global load requests
extern "C" __global__ void warp_sums(const int* x, int* sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    int lanes = min(32, blockDim.x - 32 * warp);
    int sum = i < n ? x[i] : 0;
    for (int k = 16; k > 0; k /= 2) {
        int other = __shfl_down_sync(0xffffffff, sum, k);
        if (lane + k < lanes)
            sum += other;
    }
    if (lane == 0)
        sums[blockIdx.x * warps + warp] = sum;
}

extern "C" __global__ void warp_scans(const int* x, int* scans, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int k = blockIdx.x * blockDim.x; k <= i && k < n; k++)
        sum += x[k];
    if (i < n)
        scans[i] = sum;
}
