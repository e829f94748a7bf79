// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: is a size hard-coded
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1000)
        c[i] = a[i] * b[i];
}
