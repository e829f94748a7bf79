// problem: turn
// loses: turn-sectors, turn-banks
// reason: too many sectors per load request
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    int x = blockIdx.x * 32 + threadIdx.y, y = blockIdx.y * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        if (x + k < columns && y < rows)
            t[(x + k) * rows + y] = a[y * columns + x + k];
}
