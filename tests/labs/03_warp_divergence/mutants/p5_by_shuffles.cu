// problem: meet
// loses: meet-one, meet-several, meet-warps
// reason: too few shared load requests(.|\n)*got +0\n
extern "C" __global__ void meet(const int* x, int* out, int n)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int tile = blockIdx.x * warps + warp; tile * 32 < n; tile += gridDim.x * warps) {
        int i = 32 * tile + lane;
        int mine = i < n ? x[i] : 0;
        int there = __shfl_sync(0xffffffff, mine, lane < 4 ? 31 - lane : lane % 4);
        mine += lane < 4 ? 3 * there : -2 * there;
        mine += __shfl_sync(0xffffffff, mine, (lane + 1) % 32);
        if (i < n)
            out[i] = mine;
    }
}
