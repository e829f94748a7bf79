extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[1024];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        int piece = (end - begin + blockDim.x - 1) / blockDim.x * 32;
        int from = begin + warp * piece, to = min(from + piece, end);
        for (int i = from + lane; i < to; i += 32) sum += x[i];
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        float mean = sums[0] / (end - begin);
        for (int i = from + lane; i < to; i += 32) y[i] = x[i] - mean;
        __syncthreads();
    }
}
