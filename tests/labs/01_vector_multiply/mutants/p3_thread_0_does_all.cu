// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: one thread does too much of the work[\s\S]*thread 0 of block 0
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (int i = 0; i < n; i++)
            c[i] = a[i] * b[i];
}
