// problem: sums
// loses: sums-one, sums-several, sums-barriers
// reason: one thread does too much of the work[\s\S]*instructions[\s\S]*thread 0 of block
extern "C" __global__ void tile_sums(const float* a, float* sums, int n)
{
    __shared__ float part[256];
    int t = threadIdx.x;
    for (int tile = blockIdx.x; tile * 256 < n; tile += gridDim.x) {
        int i = tile * 256 + t;
        part[t] = i < n ? a[i] : 0.0f;
        __syncthreads();
        if (t == 0) {
            float sum = 0;
            for (int k = 0; k < 256; k++)
                sum += part[k];
            sums[tile] = sum;
        }
        __syncthreads();
    }
}
