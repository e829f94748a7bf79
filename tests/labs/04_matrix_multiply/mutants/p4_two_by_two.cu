// problem: linear
// loses: linear-registers, linear-smooth
// reason: too many shared load wavefronts(.|\n)*at most 2,048
extern "C" __global__ void linear(const float* x, const float* w, const float* bias, float* out, int m, int n, int k)
{
    constexpr int TILE = 16, THREADS = 64;
    __shared__ float xs[TILE][TILE + 1], ws[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    for (int part = 0; part < 4; part++) {
        int first_row = blockIdx.y * 32 + part / 2 * TILE, first_column = blockIdx.x * 32 + part % 2 * TILE;
        float sum[2][2] = {};
        for (int start = 0; start < k; start += TILE) {
            for (int i = 8 * ty + tx; i < TILE * TILE; i += THREADS) {
                int at = i / TILE, step = i % TILE;
                int row = first_row + at, column = first_column + at;
                xs[step][at] = row < m && start + step < k ? x[row * k + start + step] : 0.0f;
                ws[step][at] = column < n && start + step < k ? w[column * k + start + step] : 0.0f;
            }
            __syncthreads();
            for (int i = 0; i < TILE; i++)
                for (int r = 0; r < 2; r++)
                    for (int s = 0; s < 2; s++)
                        sum[r][s] += xs[i][2 * ty + r] * ws[i][tx + 8 * s];
            __syncthreads();
        }
        for (int r = 0; r < 2; r++) {
            for (int s = 0; s < 2; s++) {
                int row = first_row + 2 * ty + r, column = first_column + tx + 8 * s;
                if (row < m && column < n)
                    out[row * n + column] = fmaxf(0.0f, sum[r][s] + bias[column]);
            }
        }
    }
}
