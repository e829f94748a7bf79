extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[1024];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        
        float sum = 0;
        for (int i = first[request] + threadIdx.x; i < first[request + 1]; i += blockDim.x)
            sum += x[i];
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        float mean = sums[0] / (first[request + 1] - first[request]);
        for (int i = first[request] + threadIdx.x; i < first[request + 1]; i += blockDim.x)
            y[i] = x[i] - mean;
        __syncthreads();
    }
}
