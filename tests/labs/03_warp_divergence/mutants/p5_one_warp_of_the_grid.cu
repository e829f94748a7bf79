// problem: meet
// loses: meet-one, meet-several, meet-warps
// reason: one thread does too much of the work
extern "C" __global__ void meet(const int* x, int* out, int n)
{
    __shared__ int own[32];
    int lane = threadIdx.x;
    for (int tile = 0; tile * 32 < n && blockIdx.x == 0 && lane < 32; tile++) {
        int i = 32 * tile + lane;
        int p = i < n ? x[i] : 0, mine;
        own[lane] = p;
        __syncwarp();
        mine = lane < 4 ? p + 3 * own[31 - lane] : p - 2 * own[lane % 4];
        __syncwarp();
        own[lane] = mine;
        __syncwarp();
        mine += own[(lane + 1) % 32];
        __syncwarp();
        if (i < n)
            out[i] = mine;
    }
}
