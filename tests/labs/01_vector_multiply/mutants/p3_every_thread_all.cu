// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: one thread does too much of the work
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    for (int i = 0; i < n; i++)
        c[i] = a[i] * b[i];
}
