// problem: sums
// loses: sums-one, sums-several, sums-barriers
// reason: one thread does too much of the work[\s\S]*thread 0 of block
extern "C" __global__ void tile_sums(const float* a, float* sums, int n)
{
    for (int tile = blockIdx.x; tile * 256 < n && threadIdx.x == 0; tile += gridDim.x) {
        float sum = 0;
        for (int i = tile * 256; i < min(n, tile * 256 + 256); i++)
            sum += a[i];
        sums[tile] = sum;
    }
}
