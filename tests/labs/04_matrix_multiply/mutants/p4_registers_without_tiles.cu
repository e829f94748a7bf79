// problem: linear
// loses: linear-registers, linear-smooth
// reason: too many global load sectors
extern "C" __global__ void linear(const float* x, const float* w, const float* bias, float* out, int m, int n, int k)
{
    int row = blockIdx.y * 32 + 4 * threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum[4][4] = {};
    for (int i = 0; i < k; i++) {
        float a[4], b[4];
        for (int r = 0; r < 4; r++) {
            a[r] = row + r < m ? x[(row + r) * k + i] : 0.0f;
            b[r] = column + 8 * r < n ? w[(column + 8 * r) * k + i] : 0.0f;
        }
        for (int r = 0; r < 4; r++)
            for (int s = 0; s < 4; s++)
                sum[r][s] += a[r] * b[s];
    }
    for (int r = 0; r < 4; r++)
        for (int s = 0; s < 4; s++)
            if (row + r < m && column + 8 * s < n)
                out[(row + r) * n + column + 8 * s] = fmaxf(0.0f, sum[r][s] + bias[column + 8 * s]);
}
