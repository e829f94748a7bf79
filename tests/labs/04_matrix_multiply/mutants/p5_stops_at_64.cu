// problem: turned
// loses: turned-several
// reason: ct is wrong
constexpr int TILE = 16;

extern "C" __global__ void turned(const float* a, const float* b, float* ct, int m, int n, int k)
{
    __shared__ float a_tile[2][TILE][TILE + 1], b_tile[2][TILE][TILE + 1];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int start = 0; start < min(k, 64); start += TILE) {
        int now = start / TILE % 2;  // which of the two pairs
        a_tile[now][y][x] = row < m && start + x < k ? a[row * k + start + x] : 0.0f;
        b_tile[now][y][x] = start + y < k && column < n ? b[(start + y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += a_tile[now][y][i] * b_tile[now][i][x];
    }
    __syncthreads();
    a_tile[0][y][x] = sum;
    __syncthreads();
    row = blockIdx.y * TILE + x, column = blockIdx.x * TILE + y;
    if (row < m && column < n)
        ct[column * m + row] = a_tile[0][x][y];
}
