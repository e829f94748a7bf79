// problem: border
// loses: border-sides, border-all, border-loads
// reason: one thread does too much of the work
constexpr int TILE = 16, SIDE = TILE + 2;

// Grid: tiles across, tiles down, images times channels.
extern "C" __global__ void depthwise(const float* x, const float* filters, float* y, int channels, int h, int w)
{
    __shared__ float tile[SIDE][SIDE];
    const float* image = x + blockIdx.z * h * w;
    int top = blockIdx.y * TILE - 1, left = blockIdx.x * TILE - 1;
    for (int i = 0; i < SIDE * SIDE; i++) {
        int from_row = top + i / SIDE, from_column = left + i % SIDE;
        bool inside = from_row >= 0 && from_row < h && from_column >= 0 && from_column < w;
        tile[i / SIDE][i % SIDE] = inside ? image[from_row * w + from_column] : 0.0f;
    }
    __syncthreads();
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row >= h || column >= w)
        return;
    const float* filter = filters + blockIdx.z % channels * 9;
    float sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            sum += tile[threadIdx.y + i][threadIdx.x + j] * filter[3 * i + j];
    y[(blockIdx.z * h + row) * w + column] = sum;
}
