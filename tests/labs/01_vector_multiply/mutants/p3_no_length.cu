// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: cannot be launched with \(a, b, c, n\)
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] * b[i];
}
