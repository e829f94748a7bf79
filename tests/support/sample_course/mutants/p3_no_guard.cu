// problem: multiply-cuda
// loses: cuda-guard
// reason: wrote \d+ elements past the end of \w+: \d+ threads
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] * b[i];
}
