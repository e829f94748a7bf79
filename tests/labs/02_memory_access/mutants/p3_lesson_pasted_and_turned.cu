// problem: turn
// loses: turn-right, turn-sectors, turn-banks
// reason: elements were never written
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    __shared__ float tile[32][33];
    int left = blockIdx.x * 32, top = blockIdx.y * 32, tx = threadIdx.x % 32;
    for (int ty = threadIdx.x / 32; ty < 32; ty += 8)
        if (left + tx < columns && top + ty < rows)
            tile[ty][tx] = a[(top + ty) * columns + left + tx];
    __syncthreads();
    for (int ty = threadIdx.x / 32; ty < 32; ty += 8)
        if (top + tx < rows && left + ty < columns)
            t[(left + ty) * rows + rows - 1 - (top + tx)] = tile[tx][ty];
}
