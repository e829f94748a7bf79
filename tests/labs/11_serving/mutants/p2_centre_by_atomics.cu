// problem: centre
// loses: centre-each, centre-turns, centre-counted
// reason: too many atomic

extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[1024];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            sum += x[i];
        if (threadIdx.x == 0)
            sums[0] = 0;
        __syncthreads();
        atomicAdd(&sums[0], sum);
        __syncthreads();
        float mean = sums[0] / (end - begin);
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            y[i] = x[i] - mean;
        __syncthreads();
    }
}
