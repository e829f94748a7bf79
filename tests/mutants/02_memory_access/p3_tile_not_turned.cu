// problem: turn
// loses: turn-right, turn-sectors, turn-banks
// reason: t is wrong|was never written
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < columns && y + k < rows)
            tile[threadIdx.y + k][threadIdx.x] = a[(y + k) * columns + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < rows && y + k < columns)
            t[(y + k) * rows + x] = tile[threadIdx.y + k][threadIdx.x];
}
