// problem: sums
// loses: sums-one, sums-several, sums-barriers
// reason: one thread does too much of the work
extern "C" __global__ void tile_sums(const float* a, float* sums, int n)
{
    __shared__ float part[256];
    int t = threadIdx.x;
    for (int tile = 0; tile * 256 < n && blockIdx.x == 0; tile++) {
        int i = tile * 256 + t;
        part[t] = i < n ? a[i] : 0.0f;
        __syncthreads();
        for (int step = 128; step > 32; step /= 2) {
            if (t < step)
                part[t] += part[t + step];
            __syncthreads();
        }
        if (t < 32) {
            float sum = part[t] + part[t + 32];
            for (int step = 16; step > 0; step /= 2)
                sum += __shfl_xor_sync(0xffffffff, sum, step);
            if (t == 0)
                sums[tile] = sum;
        }
        __syncthreads();
    }
}
