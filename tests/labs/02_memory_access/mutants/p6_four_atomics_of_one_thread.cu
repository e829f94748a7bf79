// problem: total
// loses: total-atomics, total-budget
// reason: too many atomics(.|\n)*at most 1\n(.|\n)*got +4\n
extern "C" __global__ void totals(const float* pixels, float* sums, int n)
{
    __shared__ float part[32][4];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 4 * n; i += gridDim.x * blockDim.x)
        mine += pixels[i];
    for (int step = 16; step >= 4; step /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, step);
    if (lane < 4)
        part[warp][lane] = mine;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int c = 0; c < 4; c++) {
            mine = 0;
            for (int w = 0; w < blockDim.x / 32; w++)
                mine += part[w][c];
            atomicAdd(&sums[c], mine);
        }
}
