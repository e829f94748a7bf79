// problem: total
// loses: total-atomics, total-budget
// reason: too many atomics(.|\n)*at most 1\n(.|\n)*got +4\n
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    __shared__ float part[32];
    for (int c = 0; c < 4; c++) {
        float sum = 0;
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            sum += pixels[4 * i + c];
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, step);
        __syncthreads();
        if (threadIdx.x % 32 == 0)
            part[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x < 32) {
            sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
            for (int step = 16; step > 0; step /= 2)
                sum += __shfl_down_sync(0xffffffff, sum, step);
            if (threadIdx.x == 0)
                atomicAdd(&sums[c], sum);
        }
    }
}
