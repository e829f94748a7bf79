// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: one thread does too much of the work[\s\S]*thread 0 of block
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    if (threadIdx.x == 0)
        for (int i = blockIdx.x * blockDim.x; i < min(n, (int)((blockIdx.x + 1) * blockDim.x)); i++)
            c[i] = a[i] * b[i];
}
