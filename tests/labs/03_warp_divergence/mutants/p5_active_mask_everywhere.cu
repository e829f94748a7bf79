// problem: meet
// loses: meet-one, meet-several, meet-warps
// reason: race|uninitialised
extern "C" __global__ void meet(const int* x, int* out, int n)
{
    __shared__ int part[8][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    int* own = part[warp];
    for (int tile = blockIdx.x * warps + warp; tile * 32 < n; tile += gridDim.x * warps) {
        int i = 32 * tile + lane;
        int mine = i < n ? x[i] : 0;
        if (lane < 4) {
            own[lane] = 2 * mine;              // A
            __syncwarp(__activemask());
            mine += own[31 - lane];            // B
        } else {
            own[lane] = 3 * mine;              // X
            __syncwarp(__activemask());
            mine -= own[lane % 4];             // Y
        }
        __syncwarp(__activemask());
        own[lane] = mine;
        __syncwarp(__activemask());
        mine += own[(lane + 1) % 32];
        __syncwarp(__activemask());
        if (i < n)
            out[i] = mine;
    }
}
