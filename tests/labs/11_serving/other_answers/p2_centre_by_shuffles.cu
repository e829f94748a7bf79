extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        float sum = 0;
        for (int i = first[request] + threadIdx.x; i < first[request + 1]; i += blockDim.x)
            sum += x[i];
        for (int apart = 16; apart; apart /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, apart);
        if (lane == 0)
            sums[warp] = sum;
        __syncthreads();
        float all = lane < blockDim.x / 32 ? sums[lane] : 0;
        for (int apart = 16; apart; apart /= 2)
            all += __shfl_xor_sync(0xffffffffu, all, apart);
        for (int i = first[request] + threadIdx.x; i < first[request + 1]; i += blockDim.x)
            y[i] = x[i] - all / (first[request + 1] - first[request]);
        __syncthreads();
    }
}
