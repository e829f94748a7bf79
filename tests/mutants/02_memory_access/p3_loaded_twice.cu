// problem: turn
// loses: turn-sectors, turn-banks
// reason: too many global load bytes
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < columns && y + k < rows)
            tile[threadIdx.y + k][threadIdx.x] = a[(y + k) * columns + x];
    for (int k = 0; k < 32; k += 8)
        if (x < columns && y + k < rows && ((volatile const float*)a)[(y + k) * columns + x] < 0)
            t[0] = 0;
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < rows && y + k < columns)
            t[(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
}
