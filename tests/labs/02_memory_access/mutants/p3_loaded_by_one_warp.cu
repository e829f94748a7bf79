// problem: turn
// loses: turn-right, turn-sectors, turn-banks
// reason: one thread does too much of the work[\s\S]*bytes loaded
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    __shared__ float tile[16][66];
    int top = blockIdx.y * 16, left = blockIdx.x * 64;
    for (int k = threadIdx.x; k < 16 * 64 && threadIdx.x < 32; k += 32) {
        int y = k / 64, x = k % 64;
        if (top + y < rows && left + x < columns)
            tile[y][x] = a[(top + y) * columns + left + x];
    }
    __syncthreads();
    for (int k = threadIdx.x; k < 16 * 64; k += 256) {
        int y = k % 16, x = k / 16;
        if (top + y < rows && left + x < columns)
            t[(left + x) * rows + rows - 1 - (top + y)] = tile[y][x];
    }
}
