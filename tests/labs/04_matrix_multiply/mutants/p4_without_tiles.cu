// problem: linear
// loses: linear-registers, linear-smooth
// reason: too many global load sectors
extern "C" __global__ void linear(const float* x, const float* w, const float* bias, float* out, int m, int n, int k)
{
    int tx = threadIdx.x, ty = threadIdx.y;
    for (int r = 0; r < 4; r++) {
        for (int s = 0; s < 4; s++) {
            int row = blockIdx.y * 32 + 4 * ty + r, column = blockIdx.x * 32 + tx + 8 * s;
            if (row < m && column < n) {
                float sum = bias[column];
                for (int i = 0; i < k; i++)
                    sum += x[row * k + i] * w[column * k + i];
                out[row * n + column] = fmaxf(0.0f, sum);
            }
        }
    }
}
