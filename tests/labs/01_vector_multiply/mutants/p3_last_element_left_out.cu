// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: the last of 1024 elements was never written
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1)
        c[i] = a[i] * b[i];
}
