// problem: turn
// loses: turn-sectors, turn-banks
// reason: too many sectors per load request
extern "C" __global__ void turn(const float* a, float* t, int rows, int columns)
{
    int top = blockIdx.y * 16, left = blockIdx.x * 64;
    for (int k = threadIdx.x; k < 16 * 64; k += 256) {
        int y = top + k % 16, x = left + k / 16;
        if (y < rows && x < columns)
            t[x * rows + rows - 1 - y] = a[y * columns + x];
    }
}
