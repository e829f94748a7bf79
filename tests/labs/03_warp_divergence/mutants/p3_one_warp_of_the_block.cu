// problem: warps
// loses: warps-whole, warps-partial, warps-scans
// reason: one thread does too much of the work
extern "C" __global__ void warp_sums(const int* x, int* sums, int n)
{
    int warps = (blockDim.x + 31) / 32, lane = threadIdx.x;
    if (lane >= 32)
        return;
    for (int warp = 0; warp < warps; warp++) {
        int sum = 0, end = min(32 * warp + 32, blockDim.x);
        for (int t = 32 * warp + lane; t < end; t += blockDim.x < 32 ? blockDim.x : 32) {
            int i = blockIdx.x * blockDim.x + t;
            sum += i < n ? x[i] : 0;
        }
        int lanes = min(32, blockDim.x);
        for (int k = 16; k > 0; k /= 2) {
            int other = __shfl_down_sync(0xffffffff, sum, k);
            if (lane + k < lanes)
                sum += other;
        }
        if (lane == 0)
            sums[blockIdx.x * warps + warp] = sum;
    }
}

extern "C" __global__ void warp_scans(const int* x, int* scans, int n)
{
    if (threadIdx.x % 32)
        return;
    int sum = 0, first = blockIdx.x * blockDim.x;
    for (int i = first + threadIdx.x; i < min(n, first + min(blockDim.x, threadIdx.x + 32)); i++)
        scans[i] = sum += x[i];
}
