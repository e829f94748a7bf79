// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: multiply_cuda
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] * b[i]
}
