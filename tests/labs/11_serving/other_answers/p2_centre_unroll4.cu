extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[1024];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        int i = begin + threadIdx.x;
        float b = 0, c = 0, d = 0;
        for (; i + 3 * blockDim.x < end; i += 4 * blockDim.x) {
            sum += x[i]; b += x[i + blockDim.x]; c += x[i + 2 * blockDim.x]; d += x[i + 3 * blockDim.x];
        }
        for (; i < end; i += blockDim.x) sum += x[i];
        sum += b + c + d;
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        float mean = sums[0] / (end - begin);
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            y[i] = x[i] - mean;
        __syncthreads();
    }
}
