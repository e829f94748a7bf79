// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: cannot be launched with \(a, b, c, n\)(.|\n)*it must be float\*
extern "C" __global__ void multiply_cuda(const double* a, const double* b, double* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] * b[i];
}
