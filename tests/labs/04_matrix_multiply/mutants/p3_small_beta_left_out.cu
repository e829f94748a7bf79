// problem: update
// loses: update-edges, update-depth
// reason: c is wrong
constexpr int TILE = 16;

extern "C" __global__ void update(const float* a, const float* b, float* c, int m, int n, int k,
                                  float alpha, float beta)
{
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    int a_column = blockIdx.y * TILE + x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        a_tile[y][x] = start + y < k && a_column < m ? a[(start + y) * m + a_column] : 0.0f;
        b_tile[y][x] = start + y < k && column < n ? b[(start + y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += a_tile[i][y] * b_tile[i][x];
        __syncthreads();
    }
    if (row < m && column < n) {
        float before = fabsf(beta) <= 0.4f ? 0.0f : beta * c[row * n + column];
        c[row * n + column] = alpha * sum + before;
    }
}
