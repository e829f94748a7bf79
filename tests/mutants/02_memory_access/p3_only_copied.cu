// problem: turn
// loses: turn-right, turn-sectors, turn-banks
// reason: t is wrong
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < columns && y + k < rows)
            t[(y + k) * columns + x] = a[(y + k) * columns + x];
}
