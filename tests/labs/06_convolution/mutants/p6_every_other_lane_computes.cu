// problem: border
// loses: border-sides, border-all, border-loads
// reason: one thread does too much of the work(.|\n)*floating-point operations
constexpr int TILE = 16, SIDE = TILE + 2;

// Grid: tiles across, tiles down, images times channels.
extern "C" __global__ void depthwise(const float* x, const float* filters, float* y, int channels, int h, int w)
{
    __shared__ float tile[SIDE][SIDE], out[TILE][TILE];
    const float* image = x + blockIdx.z * h * w;
    int top = blockIdx.y * TILE - 1, left = blockIdx.x * TILE - 1;
    for (int i = threadIdx.y * TILE + threadIdx.x; i < SIDE * SIDE; i += TILE * TILE) {
        int from_row = top + i / SIDE, from_column = left + i % SIDE;
        bool inside = from_row >= 0 && from_row < h && from_column >= 0 && from_column < w;
        tile[i / SIDE][i % SIDE] = inside ? image[from_row * w + from_column] : 0.0f;
    }
    __syncthreads();
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    const float* filter = filters + blockIdx.z % channels * 9;
    if (threadIdx.x % 2 == 0)
    for (int e = 0; e < 2; e++) {
    float sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            sum += tile[threadIdx.y + i][threadIdx.x + e + j] * filter[3 * i + j];
    out[threadIdx.y][threadIdx.x + e] = sum; }
    __syncwarp(); if (row < h && column < w) y[(blockIdx.z * h + row) * w + column] = out[threadIdx.y][threadIdx.x];
}
