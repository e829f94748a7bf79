// problem: linear
// loses: linear-right, linear-registers, linear-smooth
// reason: one thread does too much of the work|too many global load
extern "C" __global__ void linear(const float* x, const float* w, const float* bias, float* out, int m, int n, int k)
{
    constexpr int TILE = 32, DEPTH = 8, THREADS = 64;
    __shared__ float xs[DEPTH][TILE + 4], ws[DEPTH][TILE + 4];
    int tx = threadIdx.x, ty = threadIdx.y;
    int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    float sum[4][4] = {};
    for (int start = 0; start < k; start += DEPTH) {
        for (int i = 8 * ty + tx == 0 ? 0 : TILE * DEPTH; i < TILE * DEPTH; i++) {
            int at = i / DEPTH, step = i % DEPTH;
            int row = first_row + at, column = first_column + at;
            xs[step][at] = row < m && start + step < k ? x[row * k + start + step] : 0.0f;
            ws[step][at] = column < n && start + step < k ? w[column * k + start + step] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < DEPTH; i++) {
            float a[4], b[4];
            for (int r = 0; r < 4; r++) {
                a[r] = xs[i][4 * ty + r];
                b[r] = ws[i][tx + 8 * r];
            }
            for (int r = 0; r < 4; r++)
                for (int s = 0; s < 4; s++)
                    sum[r][s] += a[r] * b[s];
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        for (int s = 0; s < 4; s++) {
            int row = first_row + 4 * ty + r, column = first_column + tx + 8 * s;
            if (row < m && column < n)
                out[row * n + column] = fmaxf(0.0f, sum[r][s] + bias[column]);
        }
    }
}
