// problem: sums
// loses: sums-any
// reason: barriers
constexpr int WARPS = 4, ROWS = 32;

// Grid: columns / 32, rows / 32, both rounded up. Block: 32 x WARPS.
extern "C" __global__ void column_sums(const float* dy, float* dbias, int rows, int columns)
{
    __shared__ float part[WARPS][32];
    int column = blockIdx.x * 32 + threadIdx.x;
    int end = min(rows, (blockIdx.y + 1) * ROWS);
    float sum = 0;
    if (column < columns)
        for (int row = blockIdx.y * ROWS + threadIdx.y; row < end; row += WARPS)
            sum += dy[row * columns + column];
    part[threadIdx.y][threadIdx.x] = sum;
    for (int warp = 0; warp < WARPS; warp++)
        __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int warp = 1; warp < WARPS; warp++)
            sum += part[warp][threadIdx.x];
        atomicAdd(&dbias[column], sum);
    }
}
