// problem: meet
// loses: meet-one, meet-several, meet-warps
// reason: too many global load requests
extern "C" __global__ void meet(const int* x, int* out, int n)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int tile = blockIdx.x * warps + warp; tile * 32 < n; tile += gridDim.x * warps) {
        int i = 32 * tile + lane;
        int mine = i < n ? x[i] : 0;
        int next = 32 * tile + (lane + 1) % 32, first = 32 * tile;
        int there = lane < 4 ? first + 31 - lane : first + lane % 4;
        mine += (lane < 4 ? 3 : -2) * (there < n ? x[there] : 0);
        int other = next < n ? x[next] : 0, at = next - first;
        there = at < 4 ? first + 31 - at : first + at % 4;
        mine += other + (at < 4 ? 3 : -2) * (there < n ? x[there] : 0);
        if (i < n)
            out[i] = mine;
    }
}
