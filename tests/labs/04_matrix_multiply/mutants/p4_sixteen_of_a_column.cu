// problem: linear
// loses: linear-registers, linear-smooth
// reason: too many shared load wavefronts(.|\n)*at most 2,048
extern "C" __global__ void linear(const float* x, const float* w, const float* bias, float* out, int m, int n, int k)
{
    constexpr int TILE = 32, DEPTH = 8, THREADS = 64;
    __shared__ float xs[DEPTH][TILE + 4], ws[DEPTH][TILE + 4];
    int tx = threadIdx.x, ty = threadIdx.y;
    int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    float sum[16] = {};
    int t = 8 * ty + tx;
    for (int start = 0; start < k; start += DEPTH) {
        for (int i = 8 * ty + tx; i < TILE * DEPTH; i += THREADS) {
            int at = i / DEPTH, step = i % DEPTH;
            int row = first_row + at, column = first_column + at;
            xs[step][at] = row < m && start + step < k ? x[row * k + start + step] : 0.0f;
            ws[step][at] = column < n && start + step < k ? w[column * k + start + step] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < DEPTH; i++)
            for (int r = 0; r < 16; r++)
                sum[r] += xs[i][t / 32 * 16 + r] * ws[i][t % 32];
        __syncthreads();
    }
    for (int r = 0; r < 16; r++) {
        int row = first_row + t / 32 * 16 + r, column = first_column + t % 32;
        if (row < m && column < n)
            out[row * n + column] = fmaxf(0.0f, sum[r] + bias[column]);
    }
}
