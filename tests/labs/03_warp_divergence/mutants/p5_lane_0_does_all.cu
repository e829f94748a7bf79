// problem: meet
// loses: meet-one, meet-several, meet-warps
// reason: one thread does too much of the work
extern "C" __global__ void meet(const int* x, int* out, int n)
{
    __shared__ int part[8][64];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    int* own = part[warp];
    for (int tile = blockIdx.x * warps + warp; tile * 32 < n; tile += gridDim.x * warps) {
        int i = 32 * tile + lane;
        own[lane] = i < n ? x[i] : 0;
        __syncwarp();
        if (lane == 0) {
            for (int k = 0; k < 32; k++)
                own[32 + k] = own[k] + (k < 4 ? 3 * own[31 - k] : -2 * own[k % 4]);
            for (int k = 0; k < 32; k++)
                if (32 * tile + k < n)
                    out[32 * tile + k] = own[32 + k] + own[32 + (k + 1) % 32];
        }
        __syncwarp();
    }
}
