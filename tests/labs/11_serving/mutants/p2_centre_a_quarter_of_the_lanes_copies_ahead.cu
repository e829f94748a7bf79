// problem: centre
// loses: centre-each, centre-turns, centre-counted
// reason: one thread does too much of the work

extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[1024], kept[4096];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        for (int base = begin; base < end; base += 4096) {
            int n = min(4096, end - base);
            if (threadIdx.x % 4 == 0)
            for (int i = threadIdx.x / 4; i < n; i += blockDim.x / 4)
                asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(&kept[i])), "l"(x + base + i));
            asm volatile("cp.async.wait_all;");
            __syncthreads();
            for (int i = threadIdx.x; i < n; i += blockDim.x) sum += kept[i];
            __syncthreads();
        }
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
