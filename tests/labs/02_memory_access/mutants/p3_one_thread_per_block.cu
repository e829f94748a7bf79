// problem: turn
// loses: turn-right, turn-sectors, turn-banks
// reason: one thread does too much of the work[\s\S]*thread \(0, 0\) of block
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    int top = blockIdx.y * 16, left = blockIdx.x * 64;
    if (threadIdx.x)
        return;
    for (int y = top; y < min(top + 16, rows); y++)
        for (int x = left; x < min(left + 64, columns); x++)
            t[x * rows + rows - 1 - y] = a[y * columns + x];
}
