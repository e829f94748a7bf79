extern "C" __global__ void centre(const float* __restrict__ x, const int* __restrict__ first, float* __restrict__ y,
                                  int requests)
{
    __shared__ double sums[1024];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int count = first[request + 1] - first[request];
        sums[threadIdx.x] = 0;
        for (int i = threadIdx.x; i < count; i += blockDim.x)
            sums[threadIdx.x] += x[first[request] + i];
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
        if (count > 0) {
            float mean = (float)(sums[0] / count);
            for (int i = threadIdx.x; i < count; i += blockDim.x)
                y[first[request] + i] = x[first[request] + i] - mean;
        }
        __syncthreads();
    }
}
