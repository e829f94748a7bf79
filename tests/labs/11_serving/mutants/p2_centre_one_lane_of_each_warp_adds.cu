// problem: centre
// loses: centre-each, centre-turns, centre-counted
// reason: warp efficiency is too low

extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[33*32];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            sum += x[i];
        sums[threadIdx.x+threadIdx.x/32] = sum;
        __syncthreads();
        if (threadIdx.x % 32 == 0) {
            for (int i = 1; i < 32; i++) sum += sums[threadIdx.x + threadIdx.x/32+ i];
            sums[threadIdx.x+threadIdx.x/32] = sum;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int i = 32; i < blockDim.x; i += 32) sum += sums[i+i/32];
            sums[0] = sum;
        }
        __syncthreads();
        float mean = sums[0] / (end - begin);
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            y[i] = x[i] - mean;
        __syncthreads();
    }
}
