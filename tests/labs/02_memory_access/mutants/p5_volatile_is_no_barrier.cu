// problem: sums
// loses: sums-one, sums-several, sums-barriers
// reason: has a data race(.|\n)*nothing orders the two
extern "C" __global__ void tile_sums(const float* a, float* sums, int n)
{
    __shared__ volatile float part[256];
    int t = threadIdx.x;
    for (int tile = blockIdx.x; tile * 256 < n; tile += gridDim.x) {
        int i = tile * 256 + t;
        part[t] = i < n ? a[i] : 0.0f;
        __syncthreads();
        for (int step = 128; step > 32; step /= 2) {
            if (t < step)
                part[t] += part[t + step];
            __syncthreads();
        }
        if (t < 32) {
            part[t] += part[t + 32];
            for (int step = 16; step > 0; step /= 2)
                part[t] += part[t ^ step];
        }
        if (t == 0)
            sums[tile] = part[0];
        __syncthreads();
    }
}
