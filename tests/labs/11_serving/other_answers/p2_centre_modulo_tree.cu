extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[1024];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            sum += x[i];
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int apart = 1; apart < blockDim.x; apart *= 2) {
            if (threadIdx.x % (2 * apart) == 0)
                sums[threadIdx.x] += sums[threadIdx.x + apart];
            __syncthreads();
        }
        float mean = sums[0] / (end - begin);
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            y[i] = x[i] - mean;
        __syncthreads();
    }
}
