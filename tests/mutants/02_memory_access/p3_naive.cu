// problem: turn
// loses: turn-sectors, turn-banks
// reason: too many sectors per store request(.|\n)*at most 4(.|\n)*t\[x \* rows
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < columns && y + k < rows)
            t[x * rows + y + k] = a[(y + k) * columns + x];
}
