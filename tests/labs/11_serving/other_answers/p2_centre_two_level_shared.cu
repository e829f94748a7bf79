extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[32], mean_shared;
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            sum += x[i];
        for (int apart = 16; apart; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart);
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x < 32) {
            sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0;
            for (int apart = 16; apart; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart);
            if (threadIdx.x == 0) mean_shared = sum / (end - begin);
        }
        __syncthreads();
        float mean = mean_shared;
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            y[i] = x[i] - mean;
        __syncthreads();
    }
}
