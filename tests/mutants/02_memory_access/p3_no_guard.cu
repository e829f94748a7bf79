// problem: turn
// loses: turn-right, turn-sectors, turn-banks
// reason: a load of a\[\d+\] reaches past the end of a
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
            tile[threadIdx.y + k][threadIdx.x] = a[(y + k) * columns + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
            t[(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
}
