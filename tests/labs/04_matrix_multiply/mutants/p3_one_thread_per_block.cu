// problem: update
// loses: update-edges, update-depth, update-beta
// reason: one thread does too much of the work
extern "C" __global__ void update(const float* a, const float* b, float* c, int m, int n, int k,
                                  float alpha, float beta)
{
    if (threadIdx.x || threadIdx.y)
        return;
    for (int row = blockIdx.y * 16; row < min(m, (int)blockIdx.y * 16 + 16); row++)
        for (int column = blockIdx.x * 16; column < min(n, (int)blockIdx.x * 16 + 16); column++) {
            float sum = 0;
            for (int i = 0; i < k; i++)
                sum += a[i * m + row] * b[i * n + column];
            c[row * n + column] = alpha * sum + (beta == 0 ? 0.0f : beta * c[row * n + column]);
        }
}
