// problem: turned
// loses: turned-one, turned-several, turned-barriers
// reason: one thread does too much of the work
extern "C" __global__ void turned(const float* a, const float* b, float* ct, int m, int n, int k)
{
    if (threadIdx.x || threadIdx.y)
        return;
    for (int column = blockIdx.x * 16; column < min(n, (int)blockIdx.x * 16 + 16); column++)
        for (int row = blockIdx.y * 16; row < min(m, (int)blockIdx.y * 16 + 16); row++) {
            float sum = 0;
            for (int i = 0; i < k; i++)
                sum += a[row * k + i] * b[i * n + column];
            ct[column * m + row] = sum;
        }
}
