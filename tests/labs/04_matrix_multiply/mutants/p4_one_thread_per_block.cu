// problem: linear
// loses: linear-right, linear-registers, linear-smooth
// reason: one thread does too much of the work|does not end
extern "C" __global__ void linear(const float* x, const float* w, const float* bias, float* out, int m, int n, int k)
{
    if (threadIdx.x || threadIdx.y)
        return;
    for (int row = blockIdx.y * 32; row < min(m, (int)blockIdx.y * 32 + 32); row++)
        for (int column = blockIdx.x * 32; column < min(n, (int)blockIdx.x * 32 + 32); column++) {
            float sum = bias[column];
            for (int i = 0; i < k; i++)
                sum += x[row * k + i] * w[column * k + i];
            out[row * n + column] = fmaxf(0.0f, sum);
        }
}
