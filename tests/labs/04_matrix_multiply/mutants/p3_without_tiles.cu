// problem: update
// loses: update-beta
// reason: too many global load bytes
extern "C" __global__ void update(const float* a, const float* b, float* c, int m, int n, int k,
                                  float alpha, float beta)
{
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row < m && column < n) {
        float sum = 0;
        for (int i = 0; i < k; i++)
            sum += a[i * m + row] * b[i * n + column];
        c[row * n + column] = alpha * sum + (beta == 0 ? 0.0f : beta * c[row * n + column]);
    }
}
