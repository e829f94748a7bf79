// problem: turned
// loses: turned-one, turned-several, turned-barriers
// reason: one thread does too much of the work
constexpr int TILE = 16;

extern "C" __global__ void turned(const float* a, const float* b, float* ct, int m, int n, int k)
{
    __shared__ float a_tile[2][TILE][TILE + 1], b_tile[2][TILE][TILE + 1];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        int now = start / TILE % 2;  // which of the two pairs
        for (int i = 0; i < TILE * TILE && x + y == 0; i++) {
            int p = i / TILE, q = i % TILE, r = blockIdx.y * TILE + p, s = blockIdx.x * TILE + q;
            a_tile[now][p][q] = r < m && start + q < k ? a[r * k + start + q] : 0.0f;
            b_tile[now][p][q] = start + p < k && s < n ? b[(start + p) * n + s] : 0.0f;
        }
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
