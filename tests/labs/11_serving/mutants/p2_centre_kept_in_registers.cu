// problem: centre
// loses: centre-each, centre-turns, centre-counted
// reason: only the first

extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[1024];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float kept[32], sum = 0;
        for (int k = 0; k < 32; k++) {
            int i = begin + threadIdx.x + k * blockDim.x;
            if (i < end) sum += kept[k] = x[i]; else break;
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        float mean = sums[0] / (end - begin);
        for (int k = 0; k < 32; k++) {
            int i = begin + threadIdx.x + k * blockDim.x;
            if (i < end) y[i] = kept[k] - mean; else break;
        }
        __syncthreads();
    }
}
