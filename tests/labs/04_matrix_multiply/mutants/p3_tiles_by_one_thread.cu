// problem: update
// loses: update-edges, update-depth, update-beta
// reason: one thread does too much of the work
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
        for (int i = 0; i < TILE * TILE && x + y == 0; i++) {
            int r = start + i / TILE, in_a = blockIdx.y * TILE + i % TILE, in_b = blockIdx.x * TILE + i % TILE;
            a_tile[i / TILE][i % TILE] = r < k && in_a < m ? a[r * m + in_a] : 0.0f;
            b_tile[i / TILE][i % TILE] = r < k && in_b < n ? b[r * n + in_b] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += a_tile[i][y] * b_tile[i][x];
        __syncthreads();
    }
    if (row < m && column < n) {
        float before = beta == 0 ? 0.0f : beta * c[row * n + column];
        c[row * n + column] = alpha * sum + before;
    }
}
